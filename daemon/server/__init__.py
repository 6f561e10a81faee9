"""The daemon: assembled (assembly.py), brought into service (lifecycle/boot.py), shut down (lifecycle/shutdown.py)."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.api.management.status import status_document, tsctl_version
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import choose_endpoints, tls_context
from tsctl.daemon.config.tokens import read_tokens
from tsctl.daemon.core import logs
from tsctl.daemon.lifecycle.boot import Boot, ColdStart, Takeover
from tsctl.daemon.lifecycle.notify import status_of
from tsctl.daemon.lifecycle.parent import watch_parent
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.upgrade.new import Predecessor
from tsctl.daemon.lifecycle.upgrade.successor import Launch
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.persistence.torchserve_snapshots import TorchServeSnapshots
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.server.assembly import Assembly, Parts
from tsctl.daemon.tracing.export import TraceExport

_log = logging.getLogger("tsctl.daemon.server")


class Daemon:
    """One running daemon. `run` returns after the stop.

    Args:
        predecessor: the daemon to replace; None to start on our own.
    """

    def __init__(
        self, config: Config, launch: Launch, *, foreground: bool, predecessor: Predecessor | None = None
    ) -> None:
        self._config = config
        self._launch = launch
        self._foreground = foreground
        self._boot: Boot = ColdStart(launch.passed) if predecessor is None else Takeover(predecessor, tsctl_version())
        self._shutdown = Shutdown(config.grace, paths.pid_file(config.socket), supervised=launch.supervised)
        self._assembly = Assembly(config, launch, self._boot, self._shutdown, foreground=foreground)

    @property
    def successor(self) -> int | None:
        """The pid of the daemon that has replaced this one; None without."""
        return self._shutdown.successor

    async def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Serve until a signal to stop, or until replaced.

        Args:
            ready: called once when the daemon listens, with its addresses.

        Raises:
            StartError: the daemon cannot listen, or cannot replace the other one.
            DaemonError: the other daemon's models cannot be served.
        """
        config = self._config
        tokens = read_tokens(config, os.environ)
        endpoints = choose_endpoints(config)
        tls = tls_context(config)
        traces = TraceExport(config, os.environ, tsctl_version())
        place = self._boot.take_place(config, endpoints)
        try:
            with contextlib.suppress(paths.PathError):  # then its files cannot be opened either, and that is told
                paths.make_private(paths.logs_dir(config.state_dir), strict=False)
            logs.set_up(
                paths.daemon_log(config.state_dir), config.log_level, foreground=self._foreground,
                as_json=config.log_format == "json",
            )  # fmt: skip
            parts = self._assembly.parts(place, tokens, tls, traces)
            loading = await self._serve(parts, ready)
            await self._shut_down(parts, loading)
        finally:
            self._launch.notifier.close()
            place.leave()

    async def _serve(self, parts: Parts, ready: Callable[[dict[str, Any]], None]) -> asyncio.Task[None]:
        """Serve until the daemon must end; return the loading of the first models."""
        config, service, engine = self._config, parts.service, parts.engines.local
        startup, registrar = service.startup, service.registrar
        asyncio.get_running_loop().set_exception_handler(parts.supervision.unhandled)
        self._shutdown.watch_signals()
        for each in parts.services:
            each.begin()
        if self._launch.parent is not None:
            watch_parent(self._launch.parent, self._shutdown.parent_gone)
        try:
            await self._boot.prepare(service, self._shutdown.wanted)
            parts.grpc.bind(alone=isinstance(self._boot, ColdStart))
        except BaseException:
            await registrar.stop(0.0)
            parts.engines.close()
            engine.end()
            raise
        await parts.supervision.begin(parts.listening)
        for note in (*config.notes, *parts.traces.notes):
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        if startup.empty:
            engine.warm()  # otherwise the loaded models decide which template to warm
        await self._boot.begin(service)
        parts.trials.begin()
        registrar.rollouts.begin()
        await parts.supervision.begin(parts.grpc.servers)
        loading = asyncio.get_running_loop().create_task(_load(startup, registrar, parts.snapshots))
        urls = parts.urls
        where = (urls.inference, urls.management, urls.metrics, str(config.socket))
        addresses = ", ".join(dict.fromkeys(filter(None, (*where, *parts.grpc.urls))))
        parts.events.add("started", f"listening on {addresses}, pid {os.getpid()}, tsctl {tsctl_version()}")
        ready(
            status_document(config, urls, service.registry, self._assembly.started, parts.grpc.urls)
            | {"notes": [*config.notes, *parts.traces.notes, *registrar.ledger.memory.notes]}
        )
        where_asked = urls.inference or str(config.socket)
        self._launch.notifier.begin(parts.clock, partial(status_of, service.registry, where_asked))
        await self._shutdown.due(parts.upgrade)
        return loading

    async def _shut_down(self, parts: Parts, loading: asyncio.Task[None]) -> None:
        shutdown, listeners, registrar = self._shutdown, parts.listeners, parts.service.registrar
        parts.supervision.close()  # first: from now on servers are closed, and none is begun again
        await parts.trials.close()
        if self.successor is not None:
            self._launch.notifier.close()  # from now on the successor's loop is the one that is watched
            parts.service.place.hand_over()
            parts.engines.local.handed_over()
        else:
            self._launch.notifier.stopping(self._config.grace)
            parts.events.add("stopping", f"stopping, pid {os.getpid()}; running requests have {self._config.grace:g} s")
            if parts.snapshots is not None:
                registrar.ledger.saved = lambda unsettled: None
                if parts.service.startup.done:  # else models that are not loaded yet would be forgotten
                    parts.snapshots.write("shutdown", registrar.ledger.unsettled)
            await registrar.rollouts.remember()
        parts.events_route.close()
        parts.held.close()
        shutdown.close(registrar, parts.listening)
        grace = self._config.grace if self.successor is None else parts.upgrade.grace
        calls = asyncio.ensure_future(parts.grpc.close(grace))  # they end when their jobs do
        if self.successor is not None:
            await shutdown.wind_down(parts.upgrade, listeners)
        for listener in listeners:
            listener.stop()
        loading.cancel()
        await shutdown.finish_forms(parts.turns)
        if self.successor is None:  # else the file is the successor's
            await registrar.ledger.keep_measured()
        await shutdown.stop_models(registrar)
        await calls
        parts.engines.close()
        await shutdown.let_answers_out(listeners)
        if self.successor is not None:  # which takes our end for that of all before, and removes their files
            await self._boot.outlive(self._config.grace)
        await parts.upgrade.report_counts()
        for listener in listeners:
            listener.abort()
        parts.engines.local.end()
        parts.traces.close()
        parts.access_log.close()
        for each in reversed(parts.services):
            each.close()
        parts.recurring.close()
        logs.report_losses(lambda sentence: None)  # the loop is about to end
        parts.events.close()
        _log.info("stopped")
        await asyncio.sleep(0)  # the line reaches TorchServe's ts_log.log by way of the loop
        parts.torchserve_logs.close()


async def _load(startup: Startup, registrar: Registrar, snapshots: TorchServeSnapshots | None) -> None:
    try:
        if not startup.done:  # otherwise loaded before listening
            await startup.load()
    except Exception as error:  # noqa: BLE001 - a bug, then: each failed load was reported already
        told = {"message": "loading what is served from the start broke off", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)
    if snapshots is not None:
        snapshots.write("startup", registrar.ledger.unsettled)
        registrar.ledger.saved = snapshots.changed
