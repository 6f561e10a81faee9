"""The new daemon's side of an upgrade: load the old one's models, and take its place.

Until the old daemon has handed over, this one changes nothing on the disk, and accepts no
connection. If the old daemon never does so, or closes the channel, this one ends.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tsctl.daemon.core.errors import DaemonError, StartError
from tsctl.daemon.lifecycle.upgrade.messages import (
    FORM,
    BrokenUpgradeMessage,
    Channel,
    Expected,
    HungUp,
    Inheritance,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeOver,
    TakeoverFailed,
    decode,
    first_line,
)
from tsctl.daemon.metrics.totals import Totals
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, SnapshotEntry, decode_snapshot, read_snapshot
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.presence import all_ready
from tsctl.daemon.models.registry import Registry

Report = Callable[[int, int], None]  # workers that are ready, and the target


class Predecessor:
    """The old daemon, as seen by the new one.

    Args:
        descriptor: of our end of the channel, inherited.

    Attributes:
        inheritance: the old daemon's descriptors and models.

    Raises:
        StartError: the other end sends no inheritance that this version understands.
    """

    def __init__(self, descriptor: int) -> None:
        sock = socket.socket(fileno=descriptor)
        sock.set_inheritable(False)
        try:
            self.inheritance = _read_inheritance(sock)
        except StartError:
            sock.close()
            raise
        self._channel = Channel(sock)

    async def take_over(self, load: Callable[[Report], Coroutine[Any, Any, None]], version: str) -> list[Totals]:
        """Load all models, ask to take over, and return the old daemon's counts when that is granted.

        Raises:
            StartError: the old daemon goes on without us.
            DaemonError: as `load`.
        """
        loop = asyncio.get_running_loop()
        telling: set[asyncio.Task[None]] = set()

        def tell(done: int, total: int) -> None:
            task = loop.create_task(self._tell(Progress(done, total)))
            telling.add(task)
            task.add_done_callback(telling.discard)

        loading, answer = loop.create_task(load(tell)), loop.create_task(self._channel.hear())
        try:
            await asyncio.wait((loading, answer), return_when=asyncio.FIRST_COMPLETED)
            if not loading.done():
                raise HungUp
            loading.result()
            await asyncio.gather(*telling)
            await self._tell(ReadyToTakeOver(version))
            return decode(await answer, TakeOver).counts
        except (HungUp, BrokenUpgradeMessage):
            raise _abandoned() from None
        finally:
            loading.cancel()
            answer.cancel()
            await asyncio.gather(loading, answer, return_exceptions=True)

    async def taken(self) -> None:
        """Confirm that this daemon serves. The channel stays open: its closing signals our end to the old daemon.

        Raises:
            StartError: we were too slow, and the old daemon goes on without us.
        """
        try:
            await self._channel.tell(TakenOver())
        except HungUp:
            raise _abandoned() from None

    async def follow_counts(self, take: Callable[[Totals], None]) -> None:
        """Receive what the old daemon counts while it answers its remaining clients, until it ends."""
        with suppress(HungUp, BrokenUpgradeMessage):
            while True:
                take(decode(await self._channel.hear(), Totals))

    def fail(self, error: Exception) -> None:
        """Report why this daemon will not take over; blocks, and needs no loop."""
        reason, _, details = str(error).partition("\n")
        hint = error.hint if isinstance(error, StartError) else ""
        self._channel.tell_last(TakeoverFailed(f"{reason}; {hint}" if hint else reason, details.strip("\n")))

    def close(self) -> None:
        """Close the channel: for the old daemon, this one has ended."""
        self._channel.close()

    async def _tell(self, word: Progress | ReadyToTakeOver) -> None:
        with suppress(HungUp):  # the receiver of the answer notices
            await self._channel.tell(word)


def _read_inheritance(sock: socket.socket) -> Inheritance:
    try:
        inheritance = decode(first_line(sock), Inheritance)
    except BrokenUpgradeMessage as error:
        raise StartError(f"the running daemon sent an invalid inheritance: {error}") from None
    if inheritance.form != FORM:
        raise StartError(
            f"the running daemon uses upgrade protocol {inheritance.form}, and this tsctl supports {FORM}",
            "stop the daemon and start it",
        )
    return inheritance


def _abandoned() -> StartError:
    return StartError("the old daemon has ended, or cancelled the upgrade")


def check_snapshot(file: Path) -> None:
    """Check that this version can read the old one's snapshot. (A normal start sets an unreadable file aside.)

    Raises:
        StartError: the snapshot is not readable.
    """
    try:
        read_snapshot(file)
    except BrokenSnapshot as error:
        raise StartError(f"cannot read the snapshot `{file}`: {error}") from None


def handed_entries(models: Sequence[Expected]) -> list[SnapshotEntry]:
    """Return the old daemon's ephemeral versions, which are not in the snapshot.

    Raises:
        StartError: an entry is not readable.
    """
    try:
        return [entry for each in models if each.entry for entry in decode_snapshot(each.entry.encode()).models]
    except BrokenSnapshot as error:
        raise StartError(f"cannot read a registration of the running daemon: {error}") from None


async def load(startup: Startup, registry: Registry, models: Sequence[Expected], progress: Report) -> None:
    """Serve the old daemon's models, with as many workers, all of them ready.

    Raises:
        DaemonError: a version that was ready there fails here; the message ends with the traceback.
    """
    startup.restore()
    await startup.load()
    ready: dict[str, tuple[int, int]] = {}

    async def bring_up(expected: Expected) -> None:
        model = registry.find(expected.name, expected.version)
        if model.pool.wanted != expected.workers and not model.lost:
            if expected.workers and not model.presence.present:
                model.presence.resume("loaded before the upgrade", "startup")
            model.pool.scale(expected.workers)  # as many as there are, where more or fewer would do, too

        def count(_stage: str, done: int, total: int) -> None:
            ready[f"{model.name}/{model.version}"] = done, total
            progress(sum(each[0] for each in ready.values()), sum(each[1] for each in ready.values()))

        with suppress(*(() if expected.must else (DaemonError,))):
            await all_ready(model, model.pool.wanted, count)

    tasks = [asyncio.ensure_future(bring_up(each)) for each in models]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
