"""The old daemon's side of an upgrade: start a new one, and hand the service over when it is ready.

Changes are rejected from the beginning: those already begun are finished, and the snapshot is on
the disk, before the new daemon reads it. So the new daemon has loaded exactly the registered models, and whichever
of the two is killed at whatever moment, all acknowledged changes are in that file.

In the handover neither accepts connections: those that come wait in the queues of the sockets, which both have. So no
connection that is made after the new daemon has answered one is answered by the old daemon, with what it knew.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tsctl.daemon.core.errors import DaemonError, Loading, NotRemembered, Stopping, UpgradeFailed, Upgrading
from tsctl.daemon.core.machine.processes import PROC, available, descendants, parents_in, taken
from tsctl.daemon.core.states import follow
from tsctl.daemon.lifecycle.upgrade.messages import (
    COUNTS,
    Expected,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeoverFailed,
    within,
)
from tsctl.daemon.lifecycle.upgrade.states import TRANSITIONS, Step, UpgradeEvent
from tsctl.daemon.lifecycle.upgrade.successor import NewDaemon, SuccessorGone
from tsctl.daemon.metrics.totals import OutgoingCounts, Totals
from tsctl.daemon.models.archives.opening import Progress as Report
from tsctl.daemon.models.persistence.snapshot import Snapshot, SnapshotEntry
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.setting_values import size_text


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """Sizes in bytes; `where` names the owner of the limit behind `available`."""

    needed: int
    available: int
    where: str = "this machine"


def shortage(memory: MemoryCheck) -> str | None:
    """Return why a second daemon does not fit, or None if there is room."""
    if memory.needed <= memory.available:
        return None
    return (
        f"while both run, the new one needs about {size_text(memory.needed)} more memory, as much as this one and its"
        f" workers take now, and {memory.where} has {size_text(memory.available)} left."
        " Free memory, or skip this check with `--no-check-memory`."
    )


def measure(pid: int, proc: Path = PROC) -> MemoryCheck:
    """Measure needed and available memory; blocks, for milliseconds for each large process.

    Args:
        pid: the daemon.
    """
    needed = sum(taken(each, proc) for each in (pid, *descendants(parents_in(proc), pid)))
    least = min(available(proc))
    return MemoryCheck(needed, least.left, least.owner)


COUNT_TIME = 1.0  # seconds that the new daemon may need to read counts
TAKE_TIME = 10.0  # seconds that a new daemon which is ready may need to begin to serve

Start = Callable[[str | None, list[Expected]], NewDaemon]

GRACE = 30.0  # seconds
TIMEOUT = 300.0

_log = logging.getLogger("tsctl.daemon.upgrade")


class Door(Protocol):
    """A listening socket that both daemons have (lifecycle/sockets.py)."""

    def hold(self) -> None: ...

    async def resume(self) -> None: ...


class Upgrade:
    """Runs upgrades, at most one at a time; the first that succeeds is the end of this daemon.

    Args:
        start: starts a new daemon, with this interpreter and these models to load.
        ready: whether everything served from the start has been loaded.
        reclaim: takes the files back, which a new daemon may have claimed already.
        doors: returns what accepts connections.
        version: of this daemon.

    Attributes:
        step: the present step of the upgrade.
        given: set when the new daemon has taken over.
        grace: seconds that idle connections are kept from then on.
        successor: the new daemon, from its start on.
    """

    def __init__(
        self,
        registry: Registry,
        registrar: Registrar,
        start: Start,
        ready: Callable[[], bool],
        reclaim: Callable[[], None],
        doors: Callable[[], Sequence[Door]],
        version: str,
        measure_memory: Callable[[int], MemoryCheck] = measure,
    ) -> None:
        self.step = Step.SERVING
        self.given = asyncio.Event()
        self.grace = 0.0
        self.successor: NewDaemon | None = None
        self._registry = registry
        self._registrar = registrar
        self._start = start
        self._ready = ready
        self._reclaim = reclaim
        self._doors = doors
        self._version = version
        self._measure = measure_memory
        self._metrics = registrar.live.metrics
        self._counts: OutgoingCounts | None = None  # from the handover on
        self._task: asyncio.Task[dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"<Upgrade {self.step.name} {self.successor!r}>"

    async def __call__(
        self,
        report: Report,
        *,
        grace: float | None = None,
        timeout: float | None = None,
        python: str | None = None,
        check_memory: bool = True,
    ) -> dict[str, Any]:
        """Replace this daemon; return a description of both daemons when the new one serves.

        Args:
            report: told of each step.
            grace: seconds that the old daemon keeps idle connections; None for `GRACE`.
            timeout: seconds in which the new daemon must be ready; None for `TIMEOUT`.
            python: the interpreter that runs the new daemon; None for the old one's own.
            check_memory: reject the upgrade where both daemons do not fit.

        Raises:
            Upgrading: an upgrade is in progress.
            Loading: this daemon is itself still loading.
            UpgradeFailed: this daemon goes on as if nothing had happened.
            Stopping: this daemon was told to stop meanwhile.
        """
        if self.step is not Step.SERVING:
            raise Upgrading
        if not self._ready():
            raise Loading("The daemon is still loading its initial models. Upgrade it later.")
        grace, timeout = GRACE if grace is None else grace, TIMEOUT if timeout is None else timeout
        self._move(UpgradeEvent.ASKED)
        work = self._run(report, grace, timeout, python, check_memory=check_memory)
        self._task = asyncio.get_running_loop().create_task(work)
        try:
            return await asyncio.shield(self._task)  # the client may go away
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
            raise Stopping("Upgrade cancelled: the daemon was told to stop.") from None

    async def settle(self) -> None:
        """Cancel an upgrade, as this daemon stops; if the handover has begun, wait for its outcome."""
        if self._task is not None and not self._task.done():
            if self.step is not Step.HANDING:
                self._task.cancel()
            await asyncio.wait((self._task,))
        self._move(UpgradeEvent.STOPPED)

    async def report_counts(self) -> None:
        """Send the new daemon the counts that have changed since the last time."""
        if self._counts is not None and self.successor is not None:
            await self._send(self._counts.changed())

    async def _send(self, counts: Iterable[Totals]) -> None:
        assert self.successor is not None
        try:
            async with asyncio.timeout(COUNT_TIME):
                for each in counts:
                    await self.successor.count(each)
        except TimeoutError:  # perhaps amid a message: the new daemon does not read
            self._counts = None

    def finish(self) -> None:
        """Note that no connection is left, or that remaining ones are not awaited."""
        if self.step is Step.DRAINING:
            self._move(UpgradeEvent.FINISHED)

    def _move(self, event: UpgradeEvent) -> None:
        self.step = follow(TRANSITIONS, self.step, event)

    async def _run(
        self, report: Report, grace: float, timeout: float, python: str | None, *, check_memory: bool
    ) -> dict[str, Any]:
        gate = self._registrar.gate
        gate.close()
        began = time.monotonic()
        events = self._registrar.events
        events.add("upgrade-started", f"upgrading pid {os.getpid()}: a new daemon has {timeout:g} s to be ready")
        try:
            try:
                async with asyncio.timeout(timeout):
                    await self._check(report, check_memory=check_memory)
                    self._move(UpgradeEvent.FITS)
                    version = await self._load(report, python)
            except TimeoutError:
                late = (
                    "changes in progress did not finish"
                    if self.step is Step.CHECKING
                    else "the new daemon was not ready"
                )
                raise SuccessorGone(f"{late} within {timeout:g} s") from None
            self._move(UpgradeEvent.LOADED)
            report("handing", 0, 0)
            await self._hand_over()
        except (SuccessorGone, DaemonError) as error:
            await self._fail()
            events.add("upgrade-failed", f"the upgrade failed, and pid {os.getpid()} stays the daemon: {error}")
            details = error.details if isinstance(error, SuccessorGone) else ""
            raise UpgradeFailed(str(error), details) from None
        except BaseException:  # a stop, or a bug: the new one must not live on
            await self._fail()
            raise
        assert self.successor is not None
        self.grace = grace
        self._move(UpgradeEvent.TAKEN)
        text = f"pid {self.successor.pid}, tsctl {version}, is the daemon now; pid {os.getpid()} finishes its requests"
        events.add("upgraded", text)
        self.given.set()
        return {
            "status": f"Upgraded the daemon from pid {os.getpid()} to {self.successor.pid}",
            "old": {"pid": os.getpid(), "version": self._version},
            "new": {"pid": self.successor.pid, "version": version},
            "seconds": round(time.monotonic() - began, 3),
            "grace": grace,
        }

    async def _check(self, report: Report, *, check_memory: bool) -> None:
        """Finish changes in progress, and check that another daemon fits.

        Raises:
            SuccessorGone: the snapshot cannot be written, or the memory does not suffice.
        """
        report("checking", 0, 0)
        await self._registrar.gate.emptied()
        try:  # it is on the disk already, unless a write failed, or nothing was to be restored
            await self._registrar.ledger.save(last=True)
            await self._registrar.ledger.keep_measured()
        except NotRemembered as error:
            raise SuccessorGone(f"the snapshot for the new daemon cannot be written: {error.reason}") from None
        if check_memory:
            short = shortage(await asyncio.to_thread(self._measure, os.getpid()))
            if short is not None:
                raise SuccessorGone(short)

    async def _load(self, report: Report, python: str | None) -> str:
        """Start the new daemon and wait until it is ready; return its version.

        Raises:
            SuccessorGone: the new daemon failed, or broke the protocol.
        """
        report("starting", 0, 0)
        self.successor = self._start(python, expected(self._registry, self._registrar.ledger.hand_over()))
        _log.info("the new daemon has pid %d", self.successor.pid)
        await self.successor.introduce()
        while True:
            match await self.successor.hear():
                case Progress(done, total):
                    report("loading", done, total)
                case ReadyToTakeOver(version):
                    return version
                case TakeoverFailed(reason, details):
                    raise SuccessorGone(reason, details)
                case TakenOver():
                    raise SuccessorGone("the new daemon took over before its time")

    async def _hand_over(self) -> None:
        """Offer the service, and wait for the confirmation: a new daemon that has sent one in time serves, and stays.

        Raises:
            SuccessorGone: the new daemon has not taken over, and will not.
        """
        assert self.successor is not None
        for door in self._doors():
            door.hold()
        loop = asyncio.get_running_loop()
        until = loop.time() + TAKE_TIME
        counts = self._counts = OutgoingCounts(self._metrics)
        first, rest = within(counts.changed(), COUNTS)
        try:
            with suppress(TimeoutError):  # whether the new daemon has read the offer, its answer tells
                async with asyncio.timeout_at(until):
                    await self.successor.give(first)
            while not isinstance(word := await self.successor.hear(until - loop.time()), TakenOver):
                if isinstance(word, TakeoverFailed):
                    raise SuccessorGone(word.reason, word.details)
        except TimeoutError:
            raise SuccessorGone(f"the new daemon was ready, and did not take over within {TAKE_TIME:g} s") from None
        await self._send(rest)

    async def _fail(self) -> None:
        """Roll back: kill the successor, reclaim the sockets, reopen the gate."""
        if self.successor is not None:
            # Before anything else: there are never two.
            await self.successor.end(at_once=self.step is Step.HANDING)
            if self.step is Step.HANDING and not self._registrar.ledger.memory.is_current():
                # The successor had taken over and changed something before its end. The disk has the state that its
                # clients were told of, and this daemon has not.
                _log.critical("the new daemon took over and died: this one stops; the next start uses the snapshot")
                self._move(UpgradeEvent.TAKEN)
                self.given.set()
                return
            self.successor = None
            self._reclaim()
            if self.step is Step.HANDING:
                for door in self._doors():
                    await door.resume()
        self._registrar.ledger.take_back()
        self._move(UpgradeEvent.FAILED)
        self._registrar.gate.open()


def expected(registry: Registry, ephemeral: Sequence[SnapshotEntry] = ()) -> list[Expected]:
    """Return the models that the new daemon must serve: each version with its present target number of workers.

    Args:
        ephemeral: the entries of those that the snapshot does not hold.
    """
    entries = {(each.name, each.version): encode_snapshot(Snapshot(models=(each,))).decode() for each in ephemeral}
    return [
        Expected(
            model.name, model.version, model.state is ModelState.READY, model.pool.wanted,
            entries.get((model.name, model.version), ""),
        )
        for model in registry
        if not model.lost
    ]  # fmt: skip
