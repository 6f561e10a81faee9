"""Registering leaves a served model, or nothing: also where files and workers go wrong; see `registrations`."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import write_files
from tests.kit.daemon import StubDaemon
from tsctl.daemon.core.errors import (
    Stopping,
    WorkersFailed,
)
from tsctl.daemon.models.archives import opening, unpack
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.stub import StubEngine, StubWorker

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


class HalfBroken(StubEngine):
    """Only the first worker cannot load; the others come up in the same turn of the loop."""

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        self.load_failure = None if self.workers else BROKEN
        worker = super().start_worker(spec, events, batches)
        worker._engine = StubEngine(self.clock, load_failure=self.load_failure)
        return worker


async def test_one_worker_that_fails_is_a_failure_even_if_the_next_comes_up_at_once(bench: StubDaemon) -> None:
    bench.use(HalfBroken(bench.engine.clock))

    with pytest.raises(WorkersFailed, match="ValueError: bad weights"):
        await bench.register(bench.mar(), workers=2)

    assert (bench.names, bench.unpacked) == ([], 0)


async def test_an_archive_that_a_failed_registration_removed_meanwhile_is_unpacked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def unpack_and_lose(*given: Any) -> Path:
        nonlocal calls
        calls += 1
        unpacked = unpack.unpack(*given)
        if calls == 1:
            unpacked.rename(tmp_path / "lost")
        return unpacked

    bench = StubDaemon(tmp_path)
    monkeypatch.setattr(opening, "unpack", unpack_and_lose)

    assert (await bench.register(bench.mar())).state is ModelState.READY


async def test_progress_tells_of_loading(bench: StubDaemon) -> None:
    told: list[tuple[str, int, int]] = []
    request = Registration(url=bench.mar(), overrides=Overrides(workers=2))

    await bench.registrar.register(request, lambda *step: told.append(step))

    loading = [step for step in told if step[0] == "loading"]
    assert loading[0] == ("loading", 0, 2) and loading[-1] == ("loading", 2, 2)


async def test_a_daemon_that_stops_accepts_no_registration_and_no_request(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())

    bench.registrar.refuse()

    with pytest.raises(Stopping):
        model.submit(bench.client.job("late"))
    with pytest.raises(Stopping):
        await bench.register(bench.mar("other"))


async def test_what_a_crash_left_behind_is_removed(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    write_files(bench.models_dir / ".unpacking-x", {"a": b""})
    write_files(bench.models_dir / "0123", {"a": b""})

    bench.registrar.clean()

    assert list(bench.models_dir.iterdir()) == [model.source.unpacked]


async def test_one_that_was_over_the_restart_limit_is_tried_again_with_a_clean_record(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    slot = model.pool.slots[0]
    slot.failures = [bench.engine.clock.now()] * 4  # the fifth is the last
    bench.engine.workers[0].die("killed by SIGSEGV")
    assert model.pool.hopeless

    await bench.registrar.retry(model, synchronous=True, progress=no_progress)
    assert model.pool.ready == 1 and slot.failures == []

    bench.engine.workers[-1].die("killed by SIGSEGV")
    assert model.state is ModelState.LOADING, "one early exit is not over the limit"
