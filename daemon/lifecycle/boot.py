"""The two ways into service: a cold start, and the takeover from a running daemon.

    take_place ──▶ plan ──▶ prepare ──▶ the daemon listens ──▶ begin

                  cold start                             takeover
    take_place    lock, and bind                         inherit the old daemon's sockets and locks
    plan          clean up; the snapshot and the list    exactly the old daemon's models
    prepare       -                                      load the models, ask to take over, close the gate
    begin         register the snapshot's models         confirm, and open the gate

The server runs these steps in this order, and does not know which of the two it runs.
"""

import asyncio
from collections.abc import Sequence

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle import instance
from tsctl.daemon.lifecycle.activation import PassedSocket
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.shutdown import first
from tsctl.daemon.lifecycle.upgrade.new import Predecessor, Report, check_snapshot, handed_entries, load
from tsctl.daemon.metrics.totals import IncomingCounts
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry


class Boot:
    """A way into service, whose steps are taken once, in this order: by itself that of a daemon which replaces none.

    Args:
        passed: the listening sockets of the service manager.
    """

    def __init__(self, passed: Sequence[PassedSocket] = ()) -> None:
        self._passed = passed

    @property
    def has_stand_in(self) -> bool:
        """Return whether another process stands in for the daemon before a supervisor (upgrade/shim.py)."""
        return False

    def take_place(self, config: Config, endpoints: Sequence[Endpoint]) -> Instance:
        """Acquire the sockets and locks.

        Raises:
            StartError: the daemon cannot listen, or cannot replace the other one.
        """
        return instance.take(config, endpoints, self._passed)

    def plan(self, config: Config, registry: Registry, registrar: Registrar) -> Startup:
        """Decide which models are served from the start."""
        registrar.clean()
        return Startup(config, registry, registrar)

    async def prepare(self, place: Instance, startup: Startup, registrar: Registrar, stop: asyncio.Event) -> None:
        """Do what must be done before the daemon listens: nothing, as it listens while its models load.

        Args:
            stop: set when the daemon is told to stop.

        Raises:
            StartError: the other daemon goes on without us, or this one was told to stop.
            DaemonError: the other daemon's models cannot be served.
        """

    async def begin(self, place: Instance, startup: Startup, registrar: Registrar) -> None:
        """Begin to serve: the daemon listens, and has not read a request.

        Raises:
            StartError: the other daemon goes on without us.
        """
        del place, registrar
        startup.restore()  # before the first request is read: a restored model is never answered with 404

    async def outlive(self, timeout: float) -> None:
        """Wait until the daemon that this one has replaced has ended, for at most so many seconds."""


class Takeover(Boot):
    """The start of a daemon that replaces a running one.

    Args:
        version: of this daemon, reported to the old one.
    """

    def __init__(self, predecessor: Predecessor, version: str) -> None:
        super().__init__()
        self._predecessor = predecessor
        self._version = version
        self._counting: asyncio.Task[None] | None = None  # a task lives as long as somebody knows it

    @property
    def has_stand_in(self) -> bool:
        return self._predecessor.inheritance.stand_in

    def take_place(self, config: Config, endpoints: Sequence[Endpoint]) -> Instance:
        check_snapshot(paths.snapshot(config.state_dir))
        return instance.inherit(self._predecessor.inheritance, config, endpoints)

    def plan(self, config: Config, registry: Registry, registrar: Registrar) -> Startup:
        handed = handed_entries(self._predecessor.inheritance.models)
        registrar.directories.share()
        return Startup(config, registry, registrar, replacing=True, handed=handed)

    async def prepare(self, place: Instance, startup: Startup, registrar: Registrar, stop: asyncio.Event) -> None:
        async def work(report: Report) -> None:
            await load(startup, registrar.registry, self._predecessor.inheritance.models, report)

        taking = asyncio.ensure_future(self._predecessor.take_over(work, self._version))
        try:
            await first(taking, stop.wait())
            if not taking.done():
                raise StartError("the new daemon was told to stop before it had taken over")
            counts = taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        incoming = IncomingCounts(registrar.live.metrics)
        for each in counts:
            incoming.add_totals(each)
        self._counting = asyncio.create_task(self._follow(incoming, registrar))
        registrar.gate.close()  # until the other one knows that it is no longer the daemon
        place.claim()

    async def begin(self, place: Instance, startup: Startup, registrar: Registrar) -> None:
        del startup
        await self._predecessor.taken()
        place.ours = True
        registrar.gate.open()

    async def outlive(self, timeout: float) -> None:
        if self._counting is not None:
            await asyncio.wait([self._counting], timeout=timeout)

    async def _follow(self, incoming: IncomingCounts, registrar: Registrar) -> None:
        """Take what the old daemon counts until it ends; then its directories are ours alone."""
        await self._predecessor.follow_counts(incoming.add_totals)
        registrar.directories.own()
