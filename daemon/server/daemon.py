"""The daemon: assembled (assembly.py), brought into service (lifecycle/boot.py), shut down (lifecycle/shutdown.py)."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.api.management.status import tsctl_version, urls_of
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import choose_endpoints, tls_context
from tsctl.daemon.config.tokens import read_tokens
from tsctl.daemon.core import logs
from tsctl.daemon.events.events import is_lost
from tsctl.daemon.extension import Extension
from tsctl.daemon.lifecycle.boot import Boot, Takeover
from tsctl.daemon.lifecycle.notify import status_of
from tsctl.daemon.lifecycle.parent import watch_parent
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.supervision import OwnServer
from tsctl.daemon.lifecycle.upgrade.new import Predecessor
from tsctl.daemon.lifecycle.upgrade.successor import Launch
from tsctl.daemon.server.assembly import Parts, assemble

_log = logging.getLogger("tsctl.daemon.server")


class Daemon:
    """One running daemon. `run` returns after the stop.

    Args:
        extensions: what the daemon can do beside the core.
        predecessor: the daemon to replace; None to start on our own.
    """

    def __init__(
        self,
        config: Config,
        launch: Launch,
        extensions: Sequence[Extension],
        *,
        foreground: bool,
        predecessor: Predecessor | None = None,
    ) -> None:
        self._config = config
        self._launch = launch
        self._foreground = foreground
        self._boot = Boot(launch.passed) if predecessor is None else Takeover(predecessor, tsctl_version())
        self._shutdown = Shutdown(config.grace, paths.pid_file(config.socket), supervised=launch.supervised)
        self._servers: Sequence[OwnServer] = ()
        self._extensions = extensions

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
        place = self._boot.take_place(config, endpoints)
        try:
            with contextlib.suppress(paths.PathError):  # then its files cannot be opened either, and that is told
                paths.make_private(paths.logs_dir(config.state_dir), strict=False)
            logs.set_up(
                paths.daemon_log(config.state_dir), config.log_level, foreground=self._foreground,
                as_json=config.log_format == "json",
            )  # fmt: skip
            parts = assemble(
                config, self._launch, self._boot, self._shutdown, self._extensions, place, tokens, tls,
                foreground=self._foreground,
            )  # fmt: skip
            loading = await self._serve(parts, ready)
            await self._shut_down(parts, loading)
        finally:
            self._launch.notifier.close()
            place.leave()

    async def _serve(self, parts: Parts, ready: Callable[[dict[str, Any]], None]) -> asyncio.Task[None]:
        """Serve until the daemon must end; return the loading of the first models."""
        config, engine, supervision = self._config, parts.models.engine, parts.kernel.observation.supervision
        booted = parts.place, parts.startup, parts.kernel.registrar
        asyncio.get_running_loop().set_exception_handler(supervision.unhandled)
        self._shutdown.watch_signals()
        parts.kernel.observation.watch()
        if self._launch.parent is not None:
            watch_parent(self._launch.parent, self._shutdown.parent_gone)
        try:
            await self._boot.prepare(*booted, self._shutdown.wanted)
            alone = not isinstance(self._boot, Takeover)
            managing = parts.tables.managers
            self._servers = [server for each in parts.services for server in each.servers(managing, alone=alone)]
        except BaseException:
            await parts.kernel.registrar.stop(0.0)
            engine.close()
            engine.kill_leftovers()
            raise
        await supervision.begin(parts.listening)
        events = parts.kernel.observation.events
        if alone and is_lost(events.after()):
            events.add("daemon-lost", "the daemon before was killed, perhaps by the kernel, or its machine went down")
        for note in parts.notes:
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        if parts.startup.empty:
            engine.warm()  # otherwise the loaded models decide which template to warm
        await self._boot.begin(*booted)
        for each in parts.services:
            each.begin()
        await supervision.begin(self._servers)
        loading = asyncio.get_running_loop().create_task(_load(parts))
        urls = urls_of(parts.place.bound)
        where = [urls.inference, urls.management, urls.metrics, str(config.socket)]
        where += (url for server in self._servers for url in server.urls)
        addresses = ", ".join(dict.fromkeys(filter(None, where)))
        started = f"listening on {addresses}, pid {os.getpid()}, tsctl {tsctl_version()}"
        events.add("started", started)
        ready(parts.tables.status() | {"notes": [*parts.notes, *parts.kernel.registrar.ledger.memory.notes]})
        where_asked = urls.inference or str(config.socket)
        self._launch.notifier.report_ready(parts.kernel.clock, partial(status_of, parts.kernel.registry, where_asked))
        await self._shutdown.due(parts.upgrade)
        return loading

    async def _shut_down(self, parts: Parts, loading: asyncio.Task[None]) -> None:
        shutdown, registrar = self._shutdown, parts.kernel.registrar
        listeners = [each.listener for each in parts.listening]
        replaced, engine = self.successor is not None, parts.models.engine
        parts.kernel.observation.supervision.close()  # first: from now on servers are closed, and none is begun again
        if not replaced:
            self._launch.notifier.stopping(self._config.grace)
            stopping = f"stopping, pid {os.getpid()}; running requests have {self._config.grace:g} s"
            parts.kernel.observation.events.add("stopping", stopping)
        for each in parts.services:
            await each.settle(replaced=replaced)
        if replaced:
            self._launch.notifier.close()  # from now on the successor's loop is the one that is watched
            parts.place.hand_over()
            engine.handed_over()
        parts.models.held.close()
        shutdown.close(registrar, parts.listening)
        grace = parts.upgrade.grace if replaced else self._config.grace
        leaving = asyncio.gather(*(each.close(grace) for each in self._servers))  # they end when their jobs do
        if replaced:
            await shutdown.wind_down(parts.upgrade, listeners)
        for listener in listeners:
            listener.stop()
        loading.cancel()
        await shutdown.finish_forms(parts.kernel.turns)
        if not replaced:  # else the file is the successor's
            await registrar.ledger.keep_measured()
        await shutdown.stop_models(registrar)
        await leaving
        engine.close()
        await shutdown.let_answers_out(listeners)
        if replaced:  # the successor takes our end for that of all before, and removes their files
            await self._boot.outlive(self._config.grace)
        await parts.upgrade.report_counts()
        for listener in listeners:
            listener.abort()
        engine.kill_leftovers()
        for each in reversed(parts.services):
            each.close()


async def _load(parts: Parts) -> None:
    startup = parts.startup
    try:
        if not startup.done:  # otherwise loaded before listening
            await startup.load()
    except Exception as error:  # noqa: BLE001 - a bug, then: each failed load was reported already
        told = {"message": "loading what is served from the start broke off", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)
