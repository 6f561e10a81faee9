"""The describe document: TorchServe's keys in TorchServe's order, then ours."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.management.describe import describe, overview_of, version_gpu_memory
from tsctl.daemon.api.management.routes import order_of, registered
from tsctl.daemon.api.management.status import Urls, status_document
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.job import Reply
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.tensors import file_tensors
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.handlers.wire import Declared, Input

KEYS = [
    "modelName", "modelVersion", "modelUrl", "runtime", "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay",
    "responseTimeout", "startupTimeout", "maxRetryTimeoutInSec", "clientTimeoutInMills", "parallelType",
    "parallelLevel", "deviceType", "continuousBatching", "useJobTicket", "useVenv", "stateful",
    "sequenceMaxIdleMSec", "sequenceTimeoutMSec", "maxNumSequence", "maxSequenceJobQueueSize", "loadedAtStartup",
    "workers", "jobQueueStatus", "tsctl",
]  # fmt: skip


def serve(house: House, workers: int = 1) -> ModelVersion:
    return asyncio.run(house.serve("m", "1.0", workers))


def ours(model: ModelVersion) -> dict[str, Any]:
    document: dict[str, Any] = describe(model)["tsctl"]
    return document


def test_a_worker_is_described(house: House) -> None:
    model = serve(house)
    worker = house.engine.workers[0]
    worker.started = 1_700_000_000.25
    worker.pid = os.getpid()

    assert list(describe(model)) == KEYS
    (told,) = describe(model)["workers"]

    assert told.pop("memoryUsage") > 1_000_000
    assert told == {
        "id": "9000",
        "startTime": "2023-11-14T22:13:20.250Z",
        "status": "READY",
        "pid": os.getpid(),
        "gpu": False,
        "gpuUsage": "N/A",
    }
    worker.pid = 2**22 + 1  # beyond what the kernel gives
    assert describe(model)["workers"][0]["memoryUsage"] == 0, "of one that has gone"


def test_a_field_of_an_extension_is_no_member_of_torchserves_by_its_name_alone(house: House) -> None:
    model = serve(house)

    told = describe(
        model, fields=lambda view, _: {"stateful": True} if view is VersionView.MEMBERS else {"minWorkers": 7}
    )

    assert list(told) == KEYS
    assert (told["minWorkers"], told["tsctl"]["minWorkers"]) == (1, 7)
    assert (told["stateful"], "stateful" in told["tsctl"]) == (True, False)


def test_a_worker_on_a_gpu_is_described_with_what_it_holds_there(house: House) -> None:
    model = serve(house)
    worker = house.engine.workers[0]
    worker.gpu_ids, worker.gpu_memory = (1,), {}
    (before,) = describe(model)["workers"]
    worker.gpu_memory = {1: 5 * 2**30}
    (told,) = describe(model)["workers"]

    assert (before["gpuUsage"], before["gpuMemory"]) == ("gpuId::1", {"1": None})
    assert (told["gpu"], told["gpuUsage"]) == (True, "gpuId::1 memory.used [MiB]::5120 MiB")
    assert told["gpuMemory"] == {"1": 5 * 2**30}


def test_gpus_that_are_asked_for_and_not_used_are_a_note_of_the_registration(house: House) -> None:
    house.put("m", config="deviceIds: [0]")
    model = asyncio.run(house.registrar.register(Registration(url="m")))

    notes = ["`deviceIds` in model-config.yaml has no effect: this daemon uses no GPU"]
    assert ours(model)["notes"] == registered(model)["notes"] == notes


def test_a_version_holds_on_gpus_what_its_workers_hold_together(house: House) -> None:
    model = serve(house, workers=3)
    for worker, gpu, held in zip(house.engine.workers, (0, 1, 0), ({0: 5}, {}, {0: 7}), strict=True):
        worker.gpu_ids, worker.gpu_memory = (gpu,), held

    assert overview_of(model, default=True)["gpuMemory"] == version_gpu_memory(model) == {"0": 12, "1": None}


def test_the_list_tells_the_troubles_of_the_description(house: House, tmp_path: Path) -> None:
    model = serve(house)
    house.engine.answer = lambda job: Reply(500, b"no", error="E")
    house.send("POST", "/predictions/m", b"a")
    house.clock.advance(1.0)
    config = resolve({"state_dir": str(tmp_path), "socket": str(tmp_path / "s")}, {})

    (listed,) = status_document(config, Urls(), house.registry, 1.0)["models"]

    assert listed["troubles"] == ours(model)["troubles"] == ["100 % errors"]
    assert listed["recent"] == ours(model)["recent"]


@pytest.mark.parametrize(("config", "told"), [("useVenv: true", True), ("useVenv: false", False), ("", False)])
def test_torchserves_wish_for_an_environment_is_described(house: House, config: str, told: bool) -> None:
    house.put("m", config=config)

    assert describe(asyncio.run(house.registrar.register(Registration(url="m"))))["useVenv"] is told


def test_each_setting_is_told_with_who_said_so(house: House) -> None:
    house.put("m", config="batchSize: 8")
    request = Registration(url="m", overrides=Overrides(max_delay=0.0255))
    model = asyncio.run(house.registrar.register(request))

    told = {each["name"]: (each["value"], each["origin"]) for each in ours(model)["settings"]}
    for row in (row for extension in EXTENSIONS for row in extension.model_settings):
        assert told.pop(row.yaml)[1] == "default"

    assert told == {
        "batchSize": (8, "model-config.yaml"),
        "maxBatchDelay": (25.5, "register"),
        "batching": ("auto", "default"),
        "minWorkers": (0, "default"),
        "maxWorkers": (0, "default"),
        "responseTimeout": (120.0, "default"),
        "startupTimeout": (120.0, "default"),
        "jobQueueSize": (2, "the daemon's flag"),
        "jobQueueBytes": ("256 MiB", "default"),
        "queueTimeout": (0.0, "default"),
        "clientTimeoutInMills": (0.0, "default"),
        "retry": (None, "default"),
        "isolate": (None, "default"),
        "maxMemory": (None, "default"),
        "cpus": (None, "default"),
        "threads": (None, "default"),
        "deviceType": (None, "default"),
        "deviceIds": (None, "default"),
        "continuousBatching": (False, "default"),
        "asyncCommunication": (False, "default"),
        "inputs": ([], "default"),
        "outputs": ([], "default"),
        "platform": ("pytorch", "default"),
    }


def test_what_a_worker_notes_is_told(house: House) -> None:
    house.engine.notes = ["The call without data was passed over."]

    assert ours(serve(house))["notes"] == ["The call without data was passed over."]


@pytest.mark.parametrize(
    ("declared", "tensors"),
    [
        pytest.param(
            Declared(
                [Input("ids", "array", "", "INT64", [4])], True, built_in=True,
                outputs=[Input("best", "array", "", "FP32", [1])],
            ),
            {
                "inputs": [{"name": "ids", "datatype": "INT64", "shape": [4]}],
                "outputs": [{"name": "best", "datatype": "FP32", "shape": [1]}],
            },
            id="of a session",
        ),
        pytest.param(
            Declared([Input("a", "array"), Input("b", "array")], True, built_in=True),
            {"inputs": [{"name": each, "datatype": None, "shape": None} for each in "ab"], "outputs": []},
            id="names alone",
        ),
        pytest.param(Declared([Input("data", "array")], True, built_in=True), None, id="any built-in handler's"),
        pytest.param(Declared([Input("x", "array"), Input("y", "array")], True), None, id="a typed handler's"),
        pytest.param(None, None, id="no declaration"),
    ],
)  # fmt: skip
def test_the_tensors_that_a_models_file_tells(declared: Declared | None, tensors: Any) -> None:
    assert file_tensors(declared) == tensors


def test_a_version_of_any_length_has_a_place_among_the_others() -> None:
    versions = ["9" * 5000, "0", "00.1", "10", "9", "1.0"]

    assert sorted(versions, key=order_of) == ["0", "00.1", "1.0", "9", "10", "9" * 5000]
