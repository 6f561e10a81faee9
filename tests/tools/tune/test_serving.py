"""A model is served under one setting after the other, with all its other settings as they are."""

import asyncio
from typing import Any

import pytest

from tests.kit.at_once import AtOnce
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Reply
from tsctl.daemon.tools.tune.serving import ModelServer, NotServed, TuneOrder
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.stub import StubEngine

SETTINGS = {"responseTimeout": 7, "minWorkers": 3, "maxWorkers": 4, "loading": "on_demand", "recordInput": True}


def server(engine: StubEngine, settings: dict[str, Any] | None = None) -> ModelServer:
    manifest = {"model": {"modelName": "net", "modelVersion": "1.0", "handler": "h"}}
    document: dict[str, Any] = {
        "directory": "/nowhere", "manifest": manifest, "python": None, "devices": [],
        "settings": SETTINGS | (settings or {}),
    }  # fmt: skip
    return ModelServer(engine, engine.clock, resolve({}, {}), TuneOrder(model=document, body_bytes=1))


def engine(**options: Any) -> StubEngine:
    return StubEngine(AtOnce(asyncio.get_running_loop()), answer=lambda job: Reply(200, b"done"), **options)


def setting(batch_size: int, workers: int) -> dict[str, Any]:
    return {"batchSize": batch_size, "maxBatchDelay": 20.0, "minWorkers": workers, "maxWorkers": workers}


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /predictions/net HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.uvloop
async def test_workers_stay_where_only_their_batches_differ() -> None:
    stub = engine()
    serving = server(stub)

    for each in (setting(1, 1), setting(2, 1), setting(2, 2)):
        assert (await ask(await serving.serve(each))).startswith(b"HTTP/1.1 200 ")
    await serving.close()

    first, *others = stub.workers
    assert len(others) == 2
    assert len(first.batches) == 2


async def test_other_settings_are_those_that_the_model_is_served_with() -> None:
    stub = engine()
    serving = server(stub)

    await serving.serve(setting(1, 1))
    await serving.close()

    (worker,) = stub.workers
    assert (worker.spec.response_timeout, worker.spec.batch_size) == (7, 1)


async def test_cores_are_shared_by_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("tsctl.daemon.tools.tune.serving.usable_cores", lambda: 4)
    serving = server(engine())
    assert serving.cores == 4

    threads = []
    for workers in (1, 2):
        await serving.serve(setting(1, workers))
        threads.append(serving.threads)
    await serving.close()

    assert threads == [4, 2]


async def test_a_model_that_does_not_load_leaves_no_worker_and_may_load_the_next_time() -> None:
    stub = engine(load_failure=LoadFailure("OSError: no weights", "Traceback …"))
    serving = server(stub)

    with pytest.raises(NotServed, match="the model does not load: OSError: no weights") as failure:
        await serving.serve(setting(1, 1))
    assert failure.value.details == "Traceback …"
    stub.load_failure = None
    assert await serving.serve(setting(1, 1))
    await serving.close()


async def test_a_setting_that_cannot_be_is_refused() -> None:
    with pytest.raises(DaemonError, match="batchSize"):
        await server(engine()).serve({"batchSize": 0})


async def test_processor_time_is_that_of_this_process_where_no_model_is_served() -> None:
    assert server(engine()).cpu > 0
