"""The describe document: TorchServe's keys in TorchServe's order, then ours."""

import asyncio
import os
from collections import Counter
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.management.describe import describe, version_gpu_memory
from tsctl.daemon.api.management.routes import order_of
from tsctl.daemon.api.observing.live import live_document
from tsctl.daemon.models.file_tensors import file_tensors
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.handlers.wire import Declared, Input

KEYS = [
    "modelName", "modelVersion", "modelUrl", "runtime", "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay",
    "responseTimeout", "startupTimeout", "maxRetryTimeoutInSec", "clientTimeoutInMills", "parallelType",
    "parallelLevel", "deviceType", "continuousBatching", "useJobTicket", "useVenv", "stateful",
    "sequenceMaxIdleMSec", "sequenceTimeoutMSec", "maxNumSequence", "maxSequenceJobQueueSize", "loadedAtStartup",
    "workers", "jobQueueStatus", "tsctl",
]  # fmt: skip


def serve(house: House, workers: int = 1, config: str = "") -> ModelVersion:
    return asyncio.run(house.serve("m", "1.0", workers, config))


def ours(model: ModelVersion) -> dict[str, Any]:
    document: dict[str, Any] = describe(model)["tsctl"]
    return document


def test_the_keys_are_torchserves_in_its_order_and_then_ours(house: House) -> None:
    assert list(describe(serve(house))) == KEYS


def test_the_settings_are_told_in_torchserves_units(house: House) -> None:
    config = "batchSize: 8\nmaxBatchDelay: 250\nresponseTimeout: 30\nstartupTimeout: 60"

    document = describe(serve(house, workers=2, config=config))

    told = {key: document[key] for key in KEYS[:10]}
    assert told == {
        "modelName": "m",
        "modelVersion": "1.0",
        "modelUrl": "m-1.0",
        "runtime": "python",
        "minWorkers": 2,
        "maxWorkers": 2,
        "batchSize": 8,
        "maxBatchDelay": 250,
        "responseTimeout": 30,
        "startupTimeout": 60,
    }


@pytest.mark.parametrize(("config", "seconds"), [("", 300), ("maxRetryTimeoutInSec: 50\n", 50)])
def test_the_time_of_retries_is_told_as_the_archive_has_it(house: House, config: str, seconds: int) -> None:
    assert describe(serve(house, config=config))["maxRetryTimeoutInSec"] == seconds


def test_a_worker_is_described(house: House) -> None:
    model = serve(house)
    worker = house.engine.workers[0]
    worker.started = 1_700_000_000.25
    worker.pid = os.getpid()

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


def test_a_version_holds_on_gpus_what_its_workers_hold_together(house: House) -> None:
    model = serve(house, workers=3)
    for worker, gpu, held in zip(house.engine.workers, (0, 1, 0), ({0: 5}, {}, {0: 7}), strict=True):
        worker.gpu_ids, worker.gpu_memory = (gpu,), held

    [live] = live_document(house.registry, started=0.0, now=1.0)["models"]

    assert live["gpuMemory"] == version_gpu_memory(model) == {"0": 12, "1": None}


def test_workers_are_numbered_as_torchserve_numbers_its_ports(house: House) -> None:
    assert [worker["id"] for worker in describe(serve(house, workers=3))["workers"]] == ["9000", "9001", "9002"]


def test_a_worker_that_is_loading_is_not_ready(house: House) -> None:
    house.engine.load_time = 5.0

    assert [worker["status"] for worker in describe(serve(house))["workers"]] == ["UNLOADING"]


def test_a_worker_that_has_gone_uses_no_memory(house: House) -> None:
    model = serve(house)
    house.engine.workers[0].pid = 2**22 + 1  # beyond what the kernel gives

    assert describe(model)["workers"][0]["memoryUsage"] == 0


def test_the_queue_is_told(house: House) -> None:
    house.engine.batch_time = lambda size: 10.0
    model = serve(house)
    for _ in range(2):
        house.send("POST", "/predictions/m")

    assert describe(model)["jobQueueStatus"] == {"remainingCapacity": 1, "pendingRequests": 1}
    assert ours(model)["batching"]["running"] == 1


def test_the_batches_are_counted_by_reason_and_size(house: House) -> None:
    model = serve(house, config="batchSize: 2\nmaxBatchDelay: 100")
    for _ in range(2):
        house.send("POST", "/predictions/m")
    house.send("POST", "/predictions/m")
    house.clock.advance(1.0)

    batching = ours(model)["batching"]

    assert batching["policy"] == "auto"
    assert batching["sizes"] == {"1": 1, "2": 1}
    assert Counter(batching["reasons"]).total() == 2
    assert batching["running"] == 0


@pytest.mark.parametrize(("workers", "state", "slots"), [(0, "no workers", []), (2, "ready", ["READY", "READY"])])
def test_the_state_is_told(house: House, workers: int, state: str, slots: list[str]) -> None:
    document = ours(serve(house, workers))

    assert (document["state"], document["workers"]) == (state, slots)
    assert (document["error"], document["lastExit"]) == (None, None)


def test_a_failure_is_told_with_its_traceback(house: House) -> None:
    house.engine.load_failure = LoadFailure("ValueError: no", "Traceback: here")

    document = ours(serve(house))

    assert (document["state"], document["workers"]) == ("failed", ["GAVE_UP"])
    assert document["error"] == {"message": "ValueError: no", "traceback": "Traceback: here", "output": []}


def test_a_worker_that_died_leaves_its_last_words(house: House) -> None:
    model = serve(house)
    house.engine.load_time = 100.0

    house.engine.workers[0].die("killed by SIGKILL")

    assert ours(model)["lastExit"] == "killed by SIGKILL"


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


async def test_a_number_of_workers_that_was_scaled_to_since_says_so(house: House) -> None:
    house.put("m", config="minWorkers: 1")
    model = await house.registrar.register(Registration(url="m", synchronous=False))

    await house.registrar.scale(model, 0, 0, synchronous=False, progress=no_progress)

    told = {each["name"]: (each["value"], each["origin"]) for each in ours(model)["settings"]}

    assert told["minWorkers"] == (0, "scale")


def test_what_a_typed_handler_takes_and_what_its_worker_notes_is_told(house: House) -> None:
    inputs = [Input("images", "image", "list[Image]"), Input("title", "text")]
    house.engine.declared = Declared(inputs, batches=True, batch_size=4, streams=True, output="list[dict]")
    house.engine.notes = ["The call without data was passed over."]

    told = ours(serve(house))

    assert told["declared"] == {
        "inputs": [
            {"name": "images", "kind": "image", "annotation": "list[Image]"},
            {"name": "title", "kind": "text", "annotation": ""},
        ],
        "batches": True, "batchSize": 4, "streams": True, "output": "list[dict]",
    }  # fmt: skip
    assert told["notes"] == ["The call without data was passed over."]


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


def test_another_handler_declares_nothing(house: House) -> None:
    told = ours(serve(house))

    assert (told["declared"], told["notes"]) == (None, [])


def test_a_version_of_any_length_has_a_place_among_the_others() -> None:
    versions = ["9" * 5000, "0", "00.1", "10", "9", "1.0"]

    assert sorted(versions, key=order_of) == ["0", "00.1", "1.0", "9", "10", "9" * 5000]
