"""A model is served under one setting after the other, with all its other settings as they are."""

import asyncio
from typing import Any

import pytest

from tests.kit.stub import StubEngine
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.errors import DaemonError, WorkersFailed
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.tools.tune import ModelServer
from tsctl.daemon.workers.engine import LoadFailure

SETTINGS = {"responseTimeout": 7, "minWorkers": 3, "maxWorkers": 4, "loading": "on_demand"}


def server(engine: StubEngine) -> ModelServer:
    manifest = {"model": {"modelName": "net", "modelVersion": "1.0", "handler": "h"}}
    document: dict[str, Any] = {
        "directory": "/nowhere", "manifest": manifest, "python": None, "devices": [], "settings": SETTINGS,
    }  # fmt: skip
    return ModelServer(engine, engine.clock, resolve({}, {}), document)


def engine(**options: Any) -> StubEngine:
    return StubEngine(LoopClock(asyncio.get_running_loop()), **options)


def setting(batch_size: int, workers: int) -> dict[str, Any]:
    return {"batchSize": batch_size, "maxBatchDelay": 20.0, "minWorkers": workers, "maxWorkers": workers}


async def ask(serving: ModelServer) -> int:
    """Send a request, and return the status of its answer."""
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    model = serving.registry.find("net")
    job = Job("", (), (), model.clock.now(), answer.set_result)
    model.submit(job)
    return (await answer).status


async def test_workers_stay_where_only_their_batches_differ() -> None:
    stub = engine()
    serving = server(stub)

    for each in (setting(1, 1), setting(2, 1), setting(2, 2)):
        await serving.serve(each)
        assert await ask(serving) == 200
    await serving.unload()

    first, *others = stub.workers
    assert len(others) == 2
    assert len(first.batches) == 2


async def test_other_settings_are_those_that_the_model_is_served_with() -> None:
    stub = engine()
    serving = server(stub)

    await serving.serve(setting(1, 1))
    await serving.unload()

    (worker,) = stub.workers
    assert (worker.spec.response_timeout, worker.spec.batch_size) == (7, 1)


async def test_cores_are_shared_by_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("tsctl.daemon.tools.tune.usable_cores", lambda: 4)
    serving = server(engine())
    assert serving.cores == 4

    threads = [await serving.serve(setting(1, workers)) for workers in (1, 2)]
    await serving.unload()

    assert threads == [4, 2]


async def test_a_model_that_does_not_load_leaves_no_worker_and_may_load_the_next_time() -> None:
    stub = engine(load_failure=LoadFailure("OSError: no weights", "Traceback …"))
    serving = server(stub)

    with pytest.raises(WorkersFailed, match="OSError: no weights\n\nTraceback …"):
        await serving.serve(setting(1, 1))
    assert list(serving.registry) == []
    stub.load_failure = None
    await serving.serve(setting(1, 1))
    assert await ask(serving) == 200
    await serving.unload()


async def test_a_setting_that_cannot_be_is_refused() -> None:
    with pytest.raises(DaemonError, match="batchSize"):
        await server(engine()).serve({"batchSize": 0})


async def test_processor_time_is_that_of_this_process_where_no_model_is_served() -> None:
    assert server(engine()).cpu > 0
