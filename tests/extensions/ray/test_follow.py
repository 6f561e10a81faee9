"""Workers on a cluster are known to the services that follow a version after this one."""

from pathlib import Path

import pytest

from tests.api.house import House
from tests.kit.archives import model_files, write_mar
from tests.kit.shelf import needs
from tsctl.daemon.extensions.ray import bridge
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides


@needs("optimizing")
async def test_a_version_on_a_cluster_has_an_obstacle_to_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path)
    monkeypatch.setattr(bridge, "check_cluster", lambda config: "auto")
    monkeypatch.setattr(bridge, "engine_at", lambda *about: house.engine)
    files = model_files(handler="image_classifier", configFile="c.yaml")
    write_mar(house.store / "m.mar", files | {"c.yaml": b"engine: ray\noptimize: auto\n"})
    await house.registrar.register(Registration(url="m.mar", overrides=Overrides(workers=0)))

    _, (document,) = await house.tell("GET", "/models/m")

    trial = document["tsctl"]["trial"]
    assert (trial["state"], trial["text"].partition(",")[0]) == ("off", "only versions that run whole batches")
