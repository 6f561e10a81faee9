"""The new daemon loads what the old one serves, asks for its place, and leaves unless it is given that."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.core.errors import StartError, WorkersFailed
from tsctl.daemon.lifecycle.upgrade.messages import (
    FORM,
    Channel,
    Expected,
    HungUp,
    Inheritance,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeOver,
    TakeoverFailed,
    decode_from_new,
    encode,
)
from tsctl.daemon.lifecycle.upgrade.new import Predecessor, check_snapshot, load
from tsctl.daemon.metrics.totals import Totals
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure


def inheritance(form: int = FORM) -> Inheritance:
    return Inheritance(endpoints=[], control=3, inode=4, locks=(5, 6), models=[], form=form)


def meet(said: bytes) -> tuple[socket.socket, Predecessor]:
    """Return the old daemon's end of a channel with a message sent, and the new one's view of it."""
    old, new = socket.socketpair()
    old.sendall(said)
    return old, Predecessor(new.detach())


async def nothing(report: Any) -> None:
    """Load nothing."""


async def test_the_place_is_taken_when_it_is_given() -> None:
    old, predecessor = meet(encode(inheritance()))
    channel = Channel(old)

    async def work(report: Any) -> None:
        report(1, 2)

    taking = asyncio.ensure_future(predecessor.take_over(work, "2.0"))
    heard = [decode_from_new(await channel.hear()) for _ in range(2)]
    assert not taking.done()
    await channel.tell(TakeOver([Totals({"answers": {"2XX": 1}})]))
    counts = await taking
    await predecessor.taken()

    assert counts == [Totals({"answers": {"2XX": 1}})]
    assert heard == [Progress(1, 2), ReadyToTakeOver("2.0")]
    assert decode_from_new(await channel.hear()) == TakenOver()
    counted: list[Totals] = []
    await channel.tell(Totals({"answers": {"2XX": 2}}))
    channel.close()
    await predecessor.follow_counts(counted.append)
    assert counted == [Totals({"answers": {"2XX": 2}})]
    predecessor.close()


@pytest.mark.parametrize("loaded", [False, True], ids=["while it loads", "when it is ready"])
async def test_a_new_daemon_leaves_when_the_old_one_has_gone(loaded: bool) -> None:
    old, predecessor = meet(encode(inheritance()))
    forever = asyncio.Event()

    async def work(report: Any) -> None:
        if not loaded:
            await forever.wait()

    taking = asyncio.ensure_future(predecessor.take_over(work, "2.0"))
    await asyncio.sleep(0)
    old.close()

    with pytest.raises(StartError, match="has ended, or cancelled the upgrade"):
        await taking
    predecessor.close()


async def test_one_that_takes_the_place_too_late_leaves() -> None:
    old, predecessor = meet(encode(inheritance()))
    taking = asyncio.ensure_future(predecessor.take_over(nothing, "2.0"))
    channel = Channel(old)
    await channel.hear()
    await channel.tell(TakeOver())
    await taking
    channel.close()

    with pytest.raises(StartError):
        await predecessor.taken()
    predecessor.close()


def test_why_it_will_not_is_told_with_the_traceback() -> None:
    old, predecessor = meet(encode(inheritance()))

    predecessor.fail(WorkersFailed("Failed to start workers\n\nTraceback …\nValueError"))

    assert decode_from_new(old.recv(1000)) == TakeoverFailed("Failed to start workers", "Traceback …\nValueError")
    assert old.recv(1) == b""
    old.close()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        pytest.param(encode(inheritance(form=99)), "protocol 99", id="a form of the future"),
        pytest.param(b"hello\n", "sent an invalid inheritance", id="something else"),
    ],
)
def test_what_is_not_understood_is_told(said: bytes, message: str) -> None:
    old, new = socket.socketpair()
    with old:
        old.sendall(said)

        with pytest.raises(StartError, match=message):
            Predecessor(new.detach())


def test_a_daemon_that_says_nothing_is_not_replaced() -> None:
    old, new = socket.socketpair()
    old.close()

    with pytest.raises(StartError):
        Predecessor(new.detach())


async def test_a_closed_channel_has_nothing_to_hear() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    theirs.sendall(b"last\nhalf")
    theirs.close()
    assert await channel.hear() == b"last"
    with pytest.raises(HungUp):
        await channel.hear()
    channel.close()
    with pytest.raises(HungUp):
        await channel.hear()


async def take_over(old: StubDaemon, expected: Sequence[Expected], *, failure: LoadFailure | None = None) -> StubDaemon:
    """Load in a new daemon what an old one has left on the disk."""
    new = StubDaemon(old.root)
    new.engine.load_failure = failure
    await load(
        Startup(new.config, new.registry, new.registrar, replacing=True), new.registry, expected, lambda *_: None
    )
    return new


async def test_as_many_workers_are_ready_as_before_where_any_number_would_do(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=3)
    await bench.registrar.scale(model, 1, 4, synchronous=True, progress=no_progress)

    new = await take_over(bench, [Expected("m", "1.0", True, 3)])

    taken = new.registry.find("m")
    assert (taken.pool.ready, taken.presence.least, taken.presence.most) == (3, 1, 4)


async def test_a_model_that_was_ready_and_fails_now_ends_the_upgrade(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    await bench.register(bench.mar("n"))
    both = [Expected("m", "1.0", True, 1), Expected("n", "1.0", True, 1)]

    with pytest.raises(WorkersFailed, match="no vocabulary"):
        await take_over(bench, both, failure=LoadFailure("no vocabulary", "Traceback"))


async def test_a_model_that_had_failed_may_fail_again(bench: StubDaemon) -> None:
    await bench.register(bench.mar())

    new = await take_over(bench, [Expected("m", "1.0", False, 1)], failure=LoadFailure("no vocabulary"))

    assert new.registry.find("m").state is ModelState.FAILED


def test_a_snapshot_that_this_version_cannot_read_stays_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    check_snapshot(file)  # there is none, and that is well
    file.write_text('{"version": 99, "models": []}')

    with pytest.raises(StartError, match="its format is 99"):
        check_snapshot(file)

    assert file.exists()
