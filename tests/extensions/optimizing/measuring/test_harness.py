"""Batches are measured on a throw-away worker."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.at_once import AtOnce
from tests.kit.build import make_spec
from tests.kit.stub import StubEngine
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.extensions.optimizing.measuring.harness import Harness, HarnessLoadFailed, SampleFailed
from tsctl.daemon.workers.engine import LoadFailure

PARAMS = [Param("body", "", b"x")]


def make_engine(answer: Callable[[Job], Reply] = lambda job: Reply(200, b"done"), **options: Any) -> StubEngine:
    return StubEngine(AtOnce(asyncio.get_running_loop()), answer=answer, **options)


async def measure(engine: StubEngine, size: int) -> float:
    harness = Harness(engine, engine.clock, make_spec(), 3, PARAMS)
    try:
        await harness.start()
        return await harness.measure(size)
    finally:
        await harness.close()


async def test_a_worker_runs_two_batches_of_the_size_of_which_the_second_counts() -> None:
    engine = make_engine()

    took = await measure(engine, size=4)

    (worker,) = engine.workers
    assert took > 0
    assert [len(batch.jobs) for batch in worker.batches] == [4, 4]
    assert worker.spec.threads == 3


async def test_a_handlers_error_ends_the_measuring() -> None:
    engine = make_engine(lambda job: Reply(500, b"Prediction failed: ValueError: no", error="E"))

    with pytest.raises(SampleFailed, match="Prediction failed: ValueError: no"):
        await measure(engine, 1)


async def test_a_model_that_does_not_load_ends_the_measuring_with_its_traceback() -> None:
    engine = make_engine(load_failure=LoadFailure("OSError: no weights", "Traceback …"))

    with pytest.raises(HarnessLoadFailed, match="OSError: no weights") as failure:
        await measure(engine, 1)
    assert failure.value.details == "Traceback …"
