"""Models with `engine: ray`: which of them a daemon accepts, and what their workers take."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.kit.build import make_config
from tests.kit.clock import FakeClock
from tests.places import ROOT
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.extensions.ray import RayService
from tsctl.daemon.extensions.ray import bridge as room
from tsctl.daemon.extensions.ray.bridge import RayEngine, check_cluster
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.registering.spec import worker_spec
from tsctl.daemon.models.settings import ROWS, Overrides, merge
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.ray.messages import ActorOptions


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(room, "find_spec", lambda name: object())
    return make_config(tmp_path, ray_address="head:6379")


def spec_of(config: Config, document: dict[str, Any], python: Path | None = None, in_place: bool = False) -> WorkerSpec:
    manifest = parse_manifest({"model": {"modelName": "m", "modelVersion": "1", "handler": "h.py"}})
    settings = merge(Overrides(), document, config, gpus=2)
    spec = worker_spec(
        manifest, Path("/m"), settings, in_place=in_place, python=python,
        log=lambda text, pid, stream: None, measured=lambda each: None, isolated=lambda each: None,
    )  # fmt: skip

    async def specified() -> WorkerSpec:
        service = RayService(config, FakeClock(), lambda pid: None)
        try:
            return service.specify(settings, spec)
        finally:
            service.close()

    return asyncio.run(specified())


def test_a_worker_takes_what_the_archive_says(config: Config) -> None:
    wants = {"num_cpus": 2, "num_gpus": 0.5, "resources": {"disk": 1}, "placement": "PACK", "labels": {"zone": "a"}}

    spec = spec_of(config, {"engine": "ray", "ray": wants})

    assert isinstance(spec.engine, RayEngine)
    assert spec.own == ActorOptions(2, 0.5, {"disk": 1}, "PACK", {"zone": "a"})
    assert (spec.chosen_threads, spec.devices) == (2, ())


def test_a_worker_takes_a_processor_by_default(config: Config) -> None:
    assert spec_of(config, {"engine": "ray"}).own == ActorOptions(1, 0, {}, "SPREAD", {})


def test_other_models_stay_on_this_machine(config: Config) -> None:
    spec = spec_of(config, {"ray": {"num_gpus": 1}})

    assert (spec.engine, spec.own, spec.devices) == (None, None, (0, 1))


@pytest.mark.parametrize(
    "value",
    [
        [], {"num_cpu": 1}, {"num_cpus": "two"}, {"num_cpus": True}, {"num_gpus": -1}, {"resources": {"disk": "x"}},
        {"resources": 1}, {"placement": "spread"}, {"labels": {"zone": 1}}, {"labels": {1: "a"}},
    ],
)  # fmt: skip
def test_options_of_another_form_are_refused(config: Config, value: object) -> None:
    with pytest.raises(InvalidModel, match=r"`ray` is `.*`; expected a mapping of `num_cpus`"):
        merge(Overrides(), {"engine": "ray", "ray": value}, config)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param({"continuousBatching": True}, "`continuousBatching`", id="continuous"),
        pytest.param({"asyncCommunication": True}, "`asyncCommunication`", id="async"),
        pytest.param({"sequenceBatching": True}, "`sequenceBatching`", id="sequences"),
        pytest.param({"parallelType": "tp", "torchrun": {"nproc-per-node": 2}}, "`parallelType`", id="parallel"),
        pytest.param({"maxMemory": "1GiB"}, "`maxMemory`", id="memory"),
        pytest.param({"cpus": "0"}, "`cpus`", id="processors"),
        pytest.param({"deviceIds": [1]}, "`deviceIds`", id="GPUs"),
    ],
)
def test_settings_of_this_machine_are_refused(config: Config, document: dict[str, Any], why: str) -> None:
    needed = [row.yaml for row in ROWS.values()]
    if not document.keys() <= {*needed}:
        pytest.skip("this daemon has no such setting")
    with pytest.raises(InvalidModel, match=f"Workers on a Ray cluster do not take .*{why}"):
        spec_of(config, {"engine": "ray"} | document)


def test_files_that_may_change_and_environments_of_this_machine_are_refused(config: Config) -> None:
    with pytest.raises(InvalidModel, match="`tsctl archive`"):
        spec_of(config, {"engine": "ray"}, in_place=True)
    with pytest.raises(InvalidModel, match="--install-requirements"):
        spec_of(config, {"engine": "ray"}, python=Path("/env/bin/python"))


def test_a_daemon_needs_a_cluster_and_the_package(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadRequest, match="start it with `--ray-address"):
        check_cluster(make_config(tmp_path))

    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with pytest.raises(BadRequest, match=r"pip install 'tsctl\[ray\]'"):
        check_cluster(config)

    monkeypatch.setattr(room, "find_spec", lambda name: object())
    assert check_cluster(config) == "head:6379"


def test_the_bridge_is_imported_by_the_first_version_for_a_cluster_alone(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.api.house import House; House(Path(sys.argv[1]));"
        " print('tsctl.daemon.extensions.ray' in sys.modules, 'tsctl.daemon.extensions.ray.bridge' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.split() == ["True", "False"], done.stderr


def test_a_version_for_a_cluster_is_not_registered_without_one(house: House) -> None:
    house.put("m")

    status, document = asyncio.run(house.tell("POST", "/models?url=m&engine=ray"))

    assert status == 400 and "this daemon has no Ray cluster" in document["message"]
    assert not [*house.registry]
