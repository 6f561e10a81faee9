"""A change is on the disk before it is answered, and nothing else is."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.core.errors import NotRemembered, WorkersFailed
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.persistence.snapshot_file import SnapshotFile
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure

BROKEN = LoadFailure("ValueError: bad weights")


async def test_a_file_is_current_whoever_has_written_it_until_another_does(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.snapshot.write_text(json.dumps(json.loads(bench.snapshot.read_bytes())))  # as another tsctl may

    memory = SnapshotFile(bench.snapshot, print)

    assert memory.is_current()
    bench.snapshot.write_bytes(b"{}")
    assert not memory.is_current()


async def test_a_registration_that_may_still_fail_is_not_remembered_by_another_change(bench: StubDaemon) -> None:
    bench.engine.load_time = NEVER
    loading = asyncio.ensure_future(bench.register(bench.mar("slow")))
    await until(lambda: len(bench.engine.workers) == 1)

    await bench.register(bench.mar("other"), workers=0)

    assert bench.names == ["other/1.0", "slow/1.0"] and [*bench.remembered] == ["other/1.0"]
    loading.cancel()


@pytest.mark.parametrize("change", ["scale", "default", "set"])
async def test_a_change_that_is_answered_is_remembered_with_the_registration_that_goes_on(
    change: str, bench: StubDaemon
) -> None:
    await bench.register(bench.mar("slow", version="0.9"))
    bench.engine.load_time = NEVER
    loading = asyncio.ensure_future(bench.register(bench.mar("slow")))
    await until(lambda: len(bench.engine.workers) == 2)
    model = bench.registry.find("slow", "1.0")

    match change:
        case "scale":
            await bench.registrar.scale(model, 2, 2, synchronous=False, progress=no_progress)
        case "default":
            await bench.registrar.set_default("slow", "1.0")
        case "set":
            change_settings(model, {"batch_size": 8})
            await bench.registrar.ledger.remember(model)

    entry = bench.remembered["slow/1.0"]
    told = {"scale": entry.request.overrides.workers == 2, "set": entry.request.overrides.batch_size == 8}
    assert told.get(change, entry.default)
    bench.engine.workers[1]._events.load_failed(bench.engine.workers[1], BROKEN)
    with pytest.raises(WorkersFailed):
        await loading
    assert [*bench.remembered] == ["slow/0.9"] and bench.unpacked == 1


async def test_a_failed_version_that_a_failing_registration_replaced_is_forgotten(bench: StubDaemon) -> None:
    bench.engine.load_failure = BROKEN
    failed = await bench.register(bench.mar(), synchronous=False)
    await until(lambda: failed.state is ModelState.FAILED)
    assert [*bench.remembered] == ["m/1.0"]

    with pytest.raises(WorkersFailed):
        await bench.register(bench.mar())

    assert bench.remembered == {} and bench.unpacked == 0


async def test_changes_at_the_same_time_are_all_remembered(bench: StubDaemon) -> None:
    names = [f"m{number}" for number in range(8)]

    await asyncio.gather(*(bench.register(bench.mar(name)) for name in names))

    assert sorted(bench.remembered) == [f"{name}/1.0" for name in names]


async def test_a_change_that_cannot_be_written_is_made_and_said_to_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    bench = StubDaemon(tmp_path)
    await bench.register(bench.mar("a"))
    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "write_snapshot", full)
        with pytest.raises(NotRemembered, match=r"Change applied, .* cannot write .*: No space left on device"):
            await bench.register(bench.mar("b"))
        with pytest.raises(NotRemembered):
            await bench.registrar.unregister("a", None)
    assert bench.names == ["b/1.0"] and [*bench.remembered] == ["a/1.0"] and bench.unpacked == 2

    await bench.registrar.ledger.save()
    assert [*bench.remembered] == ["b/1.0"] and bench.unpacked == 1


def fail_at(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Let one step of writing a snapshot fail, always."""
    fsync = os.fsync

    def full(*given: object) -> None:
        raise OSError(5, "Input/output error")

    def fsync_or_fail(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        (full if is_directory == (step == "fsync of the directory") else fsync)(descriptor)

    monkeypatch.setattr(os, *(("replace", full) if step == "rename" else ("fsync", fsync_or_fail)))


@pytest.mark.parametrize("step", ["fsync of the draft", "rename", "fsync of the directory"])
async def test_after_a_write_that_failed_halfway_what_is_answered_next_is_on_the_disk(
    step: str, bench: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure after the rename leaves the new file in place: going back to the old state must be written, too."""

    await bench.register(bench.mar("a"))
    with monkeypatch.context() as patched:
        fail_at(patched, step)
        with pytest.raises(NotRemembered, match="Input/output error"):
            await bench.register(bench.mar("b"))
    on_the_disk = {entry.unpacked for entry in bench.remembered.values()}
    assert on_the_disk <= {directory.name for directory in bench.models_dir.iterdir()}

    await bench.registrar.unregister("b", None)

    assert [*bench.remembered] == ["a/1.0"] and bench.unpacked == 1


async def test_a_directory_that_the_disk_may_refer_to_is_kept_until_a_write_succeeds(
    bench: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        fail_at(patched, "fsync of the directory")
        with pytest.raises(NotRemembered):
            await bench.register(bench.mar("b"))
        with pytest.raises(NotRemembered):
            await bench.registrar.unregister("b", None)

    assert bench.names == [] and bench.unpacked == 1
    await bench.registrar.ledger.save()
    assert bench.remembered == {} and bench.unpacked == 0


async def test_a_broken_snapshot_is_kept_aside_with_every_directory_and_told_as_an_event_and_to_who_starts(
    bench: StubDaemon,
) -> None:
    await bench.register(bench.mar("a"))
    bench.snapshot.write_bytes(b"{")

    again = await bench.restart()

    aside = bench.snapshot.with_name("snapshot.broken-1.json")
    assert aside.read_bytes() == b"{" and again.names == [] and again.unpacked == 1
    said = f"the snapshot is broken, so no model is restored: register them again; kept as {aside}: Input data was"
    [event] = [each for each in again.registrar.events.after(0) if each.kind == "snapshot-broken"]
    assert event.text.startswith(said) and again.registrar.ledger.memory.notes == [f"warning: {event.text}"]
    await again.register(again.mar("b"))
    assert [*again.remembered] == ["b/1.0"]


async def test_a_stop_changes_nothing_and_what_a_crash_left_of_a_write_is_removed(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    before = bench.snapshot.read_bytes()
    draft = bench.snapshot.with_name(".snapshot-x1")
    draft.write_bytes(b"half of")

    await bench.registrar.stop(grace=1.0)
    assert bench.snapshot.read_bytes() == before and bench.unpacked == 1
    await bench.restart()

    assert not draft.exists()
