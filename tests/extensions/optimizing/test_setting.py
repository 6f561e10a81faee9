"""The setting `optimize`: from a registration, an archive or a snapshot to the workers, and what became of it."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.kit.at_once import AtOnce
from tests.kit.build import make_config, make_spec
from tsctl.daemon.api.management.commands import Parameters
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.extensions.optimizing import VARIABLE, OptimizingExtension, parse_wish
from tsctl.daemon.http.messages import Request
from tsctl.daemon.models.persistence.snapshot import Snapshot, SnapshotEntry, decode_snapshot
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides, merge
from tsctl.daemon.tools.tune import ModelServer
from tsctl.daemon.workers.processes.spawn import load_of
from tsctl.daemon.workers.stub import StubEngine
from tsctl.handlers.wire import Loaded, Optimized

(ROW,) = OptimizingExtension.model_settings


def ours(house: House, config: str = "") -> dict[str, Any]:
    """Serve a model, and return `tsctl` of its document."""
    asyncio.run(house.serve("m", config=config))
    _, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    return document["tsctl"]  # type: ignore[no-any-return]


def told(house: House) -> list[Any]:
    return [worker.spec.told for worker in house.engine.workers]


def test_optimisations_are_text_or_a_list() -> None:
    def query(text: str) -> Any:
        return Parameters(Request("POST", f"/models?optimize={text}", [])).read("optimize", ROW.kind)

    assert query("compile,bf16") == ("bf16", "compile")
    assert query("") is None
    assert ROW.kind.read(["none"]) == ("none",)
    with pytest.raises(
        BadRequest, match=r"^optimize is 'int4'; expected `auto`, or a list of none, fast_images, scaled_decode, "
    ):
        query("int4")


@pytest.mark.parametrize("value", ["int4", True, ["bf16", 1]])
def test_a_wrong_value_of_the_archive_is_named(value: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"^model-config.yaml: `optimize` is `.*`; expected `auto`, or a list of "):
        merge(Overrides(), {"optimize": value}, make_config(tmp_path))


def test_the_daemons_wish_is_one_of_three_words() -> None:
    assert parse_wish(" Asked") == "asked"
    with pytest.raises(ValueError, match=r"^`no` is not a choice of versions to optimize \(built-in, asked, never\)$"):
        parse_wish("no")


def test_a_snapshot_keeps_it() -> None:
    request = Registration(url="m", overrides=Overrides(optimize=("bf16", "compile")))
    written = encode_snapshot(Snapshot(models=(SnapshotEntry(name="m", version="1.0", request=request),)))

    (entry,) = decode_snapshot(written).models
    assert entry.request.overrides.optimize == ("bf16", "compile")


def test_what_is_asked_for_reaches_the_workers(house: House) -> None:
    document = ours(house, "optimize: [compile, bf16]")

    assert told(house) == [{"optimize": ["bf16", "compile"]}]
    assert load_of(make_spec(told=told(house)[0])).optimize == ["bf16", "compile"]
    (setting,) = [each for each in document["settings"] if each["name"] == "optimize"]
    assert (setting["value"], setting["origin"]) == (["bf16", "compile"], "model-config.yaml")
    assert document["trial"] is None


def test_where_nobody_says_anything_workers_have_the_handlers_defaults(house: House) -> None:
    document = ours(house)

    assert [each.get("optimize") for each in told(house)] == [None]
    assert document["trial"]["asked"] is False


def test_what_became_of_each_optimisation_is_told(house: House) -> None:
    outcomes = [
        Optimized("fold", True, 2.5e-7, 0.12345),
        Optimized("bf16", False, math.inf, 0.5, "its drift is inf, and 5.0e-02 is tolerated"),
        Optimized("int8", True, 0.02, 3.0, agreement=31 / 32, wanted=0.95, inputs=32),
        Optimized("compile", True, 1e-7, 0.2, known=True),
    ]
    house.engine.report = Loaded(0.0, own_handle=False, optimized=outcomes)

    assert ours(house)["optimize"] == [
        {"name": "fold", "applied": True, "drift": 2.5e-7, "seconds": 0.123},
        {
            "name": "bf16", "applied": False, "drift": None, "seconds": 0.5,
            "reason": "its drift is inf, and 5.0e-02 is tolerated",
        },
        {
            "name": "int8", "applied": True, "drift": 0.02, "agreement": 0.9688, "agreementWanted": 0.95,
            "agreementInputs": 32, "seconds": 3.0,
        },
        {"name": "compile", "applied": True, "drift": 1e-7, "seconds": 0.2, "known": True},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "served"),
    [
        pytest.param("", None, id="nothing said"),
        pytest.param("optimize: [fold]", ["fold"], id="names"),
        pytest.param("optimize: auto", None, id="no trial has chosen yet"),
    ],
)
def test_who_serves_the_model_elsewhere_is_told_what_its_workers_have(
    config: str, served: list[str] | None, house: House
) -> None:
    ours(house, config)

    _, worker = asyncio.run(house.tell("GET", "/tsctl/worker/m/1.0"))

    assert worker["settings"]["optimize"] == served


async def test_it_is_tuned_with_the_optimisations_that_it_is_served_with() -> None:
    manifest = {"model": {"modelName": "net", "modelVersion": "1.0", "handler": "h"}}
    document: dict[str, Any] = {"directory": "/nowhere", "manifest": manifest, "python": None, "devices": []}
    document["settings"] = {"optimize": ["fold"]}
    engine = StubEngine(AtOnce(asyncio.get_running_loop()))
    serving = ModelServer(engine, engine.clock, resolve({}, {}), document)

    await serving.serve({"batchSize": 1, "maxBatchDelay": 20.0, "minWorkers": 1, "maxWorkers": 1})
    await serving.unload()

    assert engine.workers[0].spec.told == {"optimize": ["fold"]}


def test_outcomes_are_kept_in_the_state_directory_unless_another_one_is_named(tmp_path: Path) -> None:
    config = make_config(tmp_path)

    assert model_environment({}, config)[VARIABLE] == str(config.state_dir / "trials")
    assert model_environment({VARIABLE: "/mine"}, config)[VARIABLE] == "/mine"
