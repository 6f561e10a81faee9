"""A replacement concurrent with other commands, a stop or a kill."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.daemon import NEVER, StubDaemon, until
from tests.models.replacements import begin, other, ready, replace
from tsctl.daemon.core.errors import BeingReplaced, Conflict, NotRemembered, Stopping, VersionNotFound
from tsctl.daemon.models import retirement
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.workers.state import WorkerState


async def test_while_it_is_being_replaced_nothing_else_changes_it(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))
    registrar = bench.registrar

    with pytest.raises(BeingReplaced, match=r"is being replaced\. Try again after the replacement"):
        await replace(bench, bench.mar())
    with pytest.raises(BeingReplaced):
        await bench.register(bench.mar())
    with pytest.raises(BeingReplaced):
        await registrar.unregister("m", None)
    with pytest.raises(BeingReplaced):
        await registrar.scale(old, 2, 2, synchronous=False, progress=no_progress)
    with pytest.raises(BeingReplaced) as caught:
        change_settings(old, {"batch_size": 2})
    await registrar.set_default("m", "1.0")

    assert caught.value.status == 409 and bench.unpacked == 2
    ready(bench)
    assert await loading is bench.registry.find("m")


async def test_one_that_is_still_being_registered_is_not_replaced(bench: StubDaemon) -> None:
    bench.engine.load_time = NEVER
    registering = asyncio.ensure_future(bench.register(bench.mar()))
    await until(lambda: len(bench.engine.workers) == 1)

    with pytest.raises(Conflict, match=r"is still being registered\. Try again"):
        await replace(bench, other(bench))

    ready(bench)
    assert await registering is bench.registry.find("m") and bench.unpacked == 1


async def test_one_that_has_lost_its_place_meanwhile_is_not_brought_back(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))
    bench.registry.discard(old)  # as a list of models does that names another archive

    ready(bench)
    with pytest.raises(VersionNotFound, match="was unregistered while it was being replaced"):
        await loading

    assert bench.names == [] and bench.unpacked == 1  # the old one's, which is not ours to remove


async def test_a_stop_ends_old_and_new(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    loading = await begin(bench, other(bench))

    await bench.registrar.stop(grace=1.0)

    with pytest.raises(Stopping):
        await loading
    assert {worker.state for worker in bench.engine.workers} == {WorkerState.EXITED} and bench.unpacked == 1
    with pytest.raises(Stopping):
        await replace(bench, other(bench))


async def test_after_a_stop_the_old_one_is_restored(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))
    await bench.registrar.stop(grace=1.0)
    with pytest.raises(Stopping):
        await loading

    again = await bench.restart()

    assert again.registry.find("m").source.directory == old.source.directory


async def test_a_stop_gives_what_was_replaced_its_grace_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)

    bench = StubDaemon(tmp_path)
    bench.engine.batch_time = lambda size: NEVER
    old = await bench.register(bench.mar())
    old.submit(bench.client.job("running"))
    await until(lambda: old.dispatcher.running == 1)
    old.submit(bench.client.job("waiting"))
    new = await replace(bench, other(bench))

    await bench.registrar.stop(grace=0.0)

    assert bench.client.statuses == {"waiting": 503, "running": 503}
    assert old.pool.empty and new.pool.empty


async def test_a_kill_before_it_is_remembered_brings_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    bench = StubDaemon(tmp_path)
    old = await bench.register(bench.mar())
    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "write_snapshot", full)
        with pytest.raises(NotRemembered):
            await replace(bench, other(bench))
    new = bench.registry.find("m")
    await until(lambda: new.replaces is None)

    again = await bench.restart()

    assert again.registry.find("m").source.directory == old.source.directory and again.unpacked == 1


async def test_a_kill_after_it_is_remembered_brings_the_new_one_back(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    new = await replace(bench, other(bench))

    again = await bench.restart()

    assert again.registry.find("m").source.directory == new.source.directory != old.source.directory
