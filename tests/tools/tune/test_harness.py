"""Batches are measured on throw-away workers, as many at the same time as are to be busy."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from daemon.core.clock import FakeTimer, LoopClock
from daemon.core.job import Job, Param, Reply
from daemon.tools.tune.measuring.harness import ENOUGH, Harness, HarnessLoadFailed, SampleFailed
from daemon.tools.tune.measuring.sweep import Sweep
from daemon.tools.tune.overlap import Contention
from daemon.workers.engine import LoadFailure
from daemon.workers.stub import StubEngine
from tests.kit.build import make_spec

PARAMS = [Param("body", "", b"x")]


class AtOnce(LoopClock):
    """A clock whose timers are due at once, in order: a stub's batches take no time."""

    def later(self, delay: float, call: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(call)
        self.soon(lambda: timer.call() if timer.call is not None else None)
        return timer


def make_engine(answer: Callable[[Job], Reply] = lambda job: Reply(200, b"done"), **options: Any) -> StubEngine:
    return StubEngine(AtOnce(asyncio.get_running_loop()), answer=answer, **options)


async def measure(engine: StubEngine, workers: int, size: int, busy: int) -> list[float]:
    harness = Harness(engine, engine.clock, make_spec(), workers, 3, PARAMS)
    try:
        await harness.start()
        return await harness.measure(size, busy, seconds=60.0)
    finally:
        await harness.close()


async def test_each_busy_worker_runs_batches_of_the_size_until_there_are_enough() -> None:
    engine = make_engine()

    took = await measure(engine, workers=3, size=4, busy=2)

    batches = [batch for worker in engine.workers for batch in worker.batches]
    assert len(took) == 2 * ENOUGH
    assert {len(batch.jobs) for batch in batches} == {4}
    assert len(batches) >= len(took) + 2, "the first of each does not count"
    assert {worker.spec.threads for worker in engine.workers} == {3}


async def test_a_handlers_error_ends_the_measuring() -> None:
    engine = make_engine(lambda job: Reply(500, b"Prediction failed: ValueError: no", error="E"))

    with pytest.raises(SampleFailed, match="Prediction failed: ValueError: no"):
        await measure(engine, 1, 1, 1)


async def test_a_model_that_does_not_load_ends_the_measuring_with_its_traceback() -> None:
    engine = make_engine(load_failure=LoadFailure("OSError: no weights", "Traceback …"))

    with pytest.raises(HarnessLoadFailed, match="OSError: no weights") as failure:
        await measure(engine, 1, 1, 1)
    assert failure.value.details == "Traceback …"


async def beside(harness: Harness, size: int) -> Contention:
    return Contention(batches=1.0 + size, others=float(harness.workers))


def sweep(engine: StubEngine, told: list[tuple[str, dict[str, Any]]]) -> Sweep:
    def tell(stage: str, **facts: Any) -> None:
        told.append((stage, facts))

    return Sweep(engine, engine.clock, make_spec(), PARAMS, 0.0, tell, beside)


async def test_every_placement_is_measured_with_one_worker_busy_and_with_all() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    swept = sweep(make_engine(), told)

    await swept.run([(1, 4), (2, 2)], most=2)

    assert [(times.workers, times.threads, sorted(times.curves)) for times in swept.times] == [
        (1, 4, [1]),
        (2, 2, [1, 2]),
    ]
    assert swept.times[1].busy.sizes == [1, 2]
    measuring = [facts for stage, facts in told if stage == "measuring"]
    assert [facts["done"] for facts in measuring] == list(range(8))
    assert {facts["total"] for facts in measuring} == {8}


async def test_what_requests_and_batches_do_to_each_other_is_measured_with_the_largest_and_all_busy() -> None:
    swept = sweep(make_engine(), [])

    await swept.run([(1, 4), (2, 2)], most=2)

    assert [times.beside for times in swept.times] == [Contention(3.0, 1.0), Contention(3.0, 2.0)]


async def test_a_size_that_fails_ends_the_sweep_of_sizes_and_is_noted() -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    def answer(job: Job) -> Reply:
        if len(engine.workers[-1].batches[-1].jobs) > 2:
            return Reply(507, b"out of memory\nmore", error="E")
        return Reply(200, b"")

    engine = make_engine(answer)
    swept = sweep(engine, told)

    await swept.run([(1, 1)], most=8)

    assert swept.times[0].busy.sizes == [1, 2]
    notes = [facts["text"] for stage, facts in told if stage == "note"]
    assert notes == ["a batch of 4 failed, so larger ones were skipped: out of memory"]
