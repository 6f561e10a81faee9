"""Workers that do not leave, and those that never come; how versions leave is in `registrations/leaving.txt`."""

from pathlib import Path

import pytest

from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.core.errors import CleaningTimedOut, Stopping
from tsctl.daemon.models import retirement
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.workers.stub import StubWorker


async def test_a_worker_that_cannot_be_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)
    monkeypatch.setattr(StubWorker, "kill", lambda worker: None)  # as a process that the kernel does not let go

    bench = StubDaemon(tmp_path, grace="0")
    bench.engine.batch_time = lambda size: NEVER
    model = await bench.register(bench.mar())
    model.submit(bench.client.job("running"))
    await until(lambda: model.dispatcher.running == 1)

    with pytest.raises(CleaningTimedOut, match="Timed out while cleaning resources: m"):
        await bench.registrar.unregister("m", None)

    assert (bench.names, bench.remembered) == ([], {})


async def test_a_version_that_was_unregistered_before_its_workers_started_starts_none(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=0)
    model.settings = model.settings.changed({"workers": 1, "max_workers": 1}, "set")
    model.stop()

    model.start()
    with pytest.raises(Stopping):
        await bench.registrar.scale(model, 1, 1, synchronous=False, progress=no_progress)

    assert bench.engine.workers == []
