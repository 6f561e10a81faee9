"""A version that has failed is tried again when somebody says so, with a clean record; no other is."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.core.errors import BadRequest, BeingReplaced, NotFailed, Stopping, WorkersFailed
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


async def failed(bench: StubDaemon, workers: int = 1) -> ModelVersion:
    bench.engine.load_failure = BROKEN
    model = await bench.register(bench.mar(), workers=workers, synchronous=False)
    await until(lambda: model.state is ModelState.FAILED)
    bench.engine.load_failure = None
    return model


async def retry(bench: StubDaemon, model: ModelVersion, *, synchronous: bool = True) -> None:
    await bench.registrar.retry(model, synchronous=synchronous, progress=no_progress)


async def test_one_that_could_not_load_comes_up_with_all_its_workers(bench: StubDaemon) -> None:
    model = await failed(bench, workers=2)
    remembered = bench.snapshot.read_bytes()

    await retry(bench, model)

    assert model.state is ModelState.READY and model.pool.ready == 2
    assert model.pool.failure is None and model.pool.last_exit is None
    assert bench.snapshot.read_bytes() == remembered


async def test_one_that_was_over_the_restart_limit_starts_with_a_clean_record(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    slot = model.pool.slots[0]
    slot.failures = [bench.engine.clock.now()] * 4  # the fifth is the last
    bench.engine.workers[0].die("killed by SIGSEGV")
    assert model.pool.hopeless

    await retry(bench, model)
    assert model.pool.ready == 1 and slot.failures == []

    bench.engine.workers[-1].die("killed by SIGSEGV")
    assert model.state is ModelState.LOADING, "one early exit is not over the limit"


async def test_what_fails_again_is_told_with_its_traceback_and_stays_failed(bench: StubDaemon) -> None:
    model = await failed(bench)
    bench.engine.load_failure = BROKEN

    with pytest.raises(WorkersFailed, match=r"(?s)bad weights.*Traceback"):
        await retry(bench, model)

    assert model.state is ModelState.FAILED and bench.names == ["m/1.0"] == [*bench.remembered]


async def test_without_waiting_it_is_on_its_way(bench: StubDaemon) -> None:
    model = await failed(bench)

    await retry(bench, model, synchronous=False)

    assert model.state is ModelState.LOADING
    with pytest.raises(NotFailed, match=r"has not failed \(state: loading\)"):
        await retry(bench, model)
    await until(lambda: model.state is ModelState.READY)


@pytest.mark.parametrize(("workers", "word"), [(1, "ready"), (0, "no workers")])
async def test_one_that_has_not_failed_is_left_alone(workers: int, word: str, bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=workers)

    with pytest.raises(NotFailed) as caught:
        await retry(bench, model)

    assert caught.value.status == 409
    assert str(caught.value) == (f"Model version 1.0 of model m has not failed (state: {word}); nothing to retry.")
    assert len(bench.engine.workers) == workers


async def test_where_only_some_workers_failed_it_says_how_they_are_started_again(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    bench.engine.load_failure = BROKEN
    with pytest.raises(WorkersFailed):
        await bench.registrar.scale(model, 3, 3, synchronous=True, progress=no_progress)
    await until(lambda: model.pool.given_up == 2)

    with pytest.raises(NotFailed, match=r"2 of 3 workers failed: `tsctl scale m/1\.0 3` starts them"):
        await retry(bench, model)


async def test_one_whose_files_are_gone_takes_a_registration(tmp_path: Path, bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    assert model.source.unpacked is not None
    model.source.unpacked.rename(tmp_path / "lost")
    (bench.store / "m-1.0.mar").unlink()
    again = await bench.restart()

    with pytest.raises(BadRequest, match=r"The files of .* are gone; register it again\."):
        await retry(again, again.registry.find("m"))


async def test_one_that_is_being_replaced_is_not_tried_again(bench: StubDaemon) -> None:
    model = await failed(bench)
    bench.engine.load_time = NEVER
    request = Registration(url="m-1.0.mar", synchronous=False)
    await bench.registrar.register(request, replace=True)

    with pytest.raises(BeingReplaced):
        await retry(bench, model)


async def test_one_that_is_unregistered_meanwhile_says_so(bench: StubDaemon) -> None:
    model = await failed(bench)
    bench.engine.load_time = NEVER
    retrying = asyncio.ensure_future(retry(bench, model))
    await until(lambda: model.state is ModelState.LOADING)

    await bench.registrar.unregister("m", None)

    with pytest.raises(Stopping):
        await retrying
    assert (bench.names, bench.unpacked) == ([], 0)
