"""The daemon: build everything, listen, report that, serve, stop in order (lifecycle/shutdown.py)."""

import asyncio
import contextlib
import logging
import os
import resource
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from daemon import paths
from daemon.api.guards import guard
from daemon.api.inference.routes import inference_routes
from daemon.api.inference.turns import Turns
from daemon.api.management.routes import management_routes
from daemon.api.management.status import settings_document, status_document, tsctl_version, urls_of
from daemon.api.management.upgrade import upgrade_route
from daemon.api.metrics import metrics_routes
from daemon.config.config import Config
from daemon.config.endpoints import choose_endpoints, tls_context
from daemon.config.tokens import Tokens, read_tokens
from daemon.config.worker_env import model_environment
from daemon.core import logs
from daemon.core.arena import open_arena
from daemon.core.clock import LoopClock
from daemon.core.errors import StartError
from daemon.http.access_log import AccessLog
from daemon.http.bounds.full import connections_within
from daemon.http.bounds.receiving import Receiving
from daemon.http.bounds.sending import Sending
from daemon.http.limits import HttpLimits
from daemon.http.listener import Listener
from daemon.http.messages import Request
from daemon.http.router import Router, join
from daemon.lifecycle import instance
from daemon.lifecycle.instance import Place
from daemon.lifecycle.shutdown import Ending, first
from daemon.lifecycle.sockets import listen, listen_control
from daemon.lifecycle.upgrade.messages import Expected
from daemon.lifecycle.upgrade.new import Predecessor, Report, check_snapshot, load
from daemon.lifecycle.upgrade.old import Upgrade
from daemon.lifecycle.upgrade.successor import Launch, NewDaemon, start
from daemon.metrics.gpu import Gpus
from daemon.metrics.host import Host
from daemon.metrics.metrics import Metrics
from daemon.models.archives.store import sizes
from daemon.models.persistence.startup import Startup
from daemon.models.registrar import Registration
from daemon.models.registry import Registry
from daemon.workers.local import LocalEngine

_METRICS_BODY = 64 * 1024  # bytes: requests for metrics need no body

_log = logging.getLogger("daemon.server")


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
        self._predecessor = predecessor
        self._started = time.time()
        self._ending = Ending(config.grace, paths.pid_file(config.socket), supervised=launch.supervised)

    @property
    def successor(self) -> int | None:
        """The pid of the daemon that has replaced this one; None without."""
        return self._ending.successor

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
        if self._predecessor is None:
            ours = instance.take(config, endpoints)
        else:
            check_snapshot(paths.snapshot(config.state_dir))
            ours = instance.inherit(self._predecessor.inheritance, config, endpoints)
        try:
            with contextlib.suppress(paths.PathError):  # then its files cannot be opened either, and that is told
                paths.make_private(paths.logs_dir(config.state_dir), strict=False)
            logs.set_up(paths.daemon_log(config.state_dir), config.log_level, foreground=self._foreground)
            await self._serve(ours, tokens, tls, ready)
        finally:
            ours.leave()

    async def _serve(
        self, ours: Place, tokens: Tokens, tls: ssl.SSLContext | None, ready: Callable[[dict[str, Any]], None]
    ) -> None:
        config, ending, loop = self._config, self._ending, asyncio.get_running_loop()
        files = _raise_file_limit()
        clock = LoopClock(loop)
        registry, metrics = Registry(), Metrics()
        model_logs = logs.ModelLogs(partial(paths.model_log, config.state_dir), foreground=self._foreground)
        arena = open_arena()
        if arena is not None:
            arena.soon = clock.soon
        engine = LocalEngine(
            loop, clock, model_environment(os.environ, config), arena, template=config.template, alone=True
        )
        registration = Registration(config, registry, engine, clock, model_logs, metrics)
        if self._predecessor is None:
            registration.clean()
        startup = Startup(config, registry, registration, replacing=self._predecessor is not None)
        access_log = AccessLog(paths.access_log(config.state_dir), clock, foreground=self._foreground)
        urls = urls_of(ours.bound)

        def own(word: str) -> Any | None:
            match word:
                case "status":
                    return status_document(config, urls, registry, self._started)
                case "config":
                    return settings_document(config, tokens)
                case "store":
                    return sizes(config.model_store)
            return None

        def tell(request: Request, status: int, seconds: float) -> None:
            metrics.answered(status)
            if config.access_log:
                access_log.note(request, status, seconds)

        def start_new(python: str | None, models: list[Expected]) -> NewDaemon:
            stands_in = self._predecessor is not None and self._predecessor.inheritance.stand_in
            inheritance = ours.inheritance(models, stand_in=stands_in or self._launch.supervised)
            new = start(self._launch, python, inheritance)
            engine.spare(new.pid)
            return new

        upgrade = Upgrade(registry, registration, start_new, lambda: startup.done, ours.claim, tsctl_version())
        limits = HttpLimits(config.max_request_size, config.header_timeout, config.body_timeout, config.keep_alive)
        measured = metrics_routes(registry, metrics, Host(), Gpus.of_this_machine(clock)) if config.metrics else {}
        turns = Turns(clock.now)
        routes = inference_routes(registry, lambda: startup.done and not ending.wanted.is_set(), turns) | measured
        commands = join(
            {"tsctl": upgrade_route(upgrade)}, management_routes(registry, registration, own, local_paths=True)
        )
        remote = management_routes(registry, registration, None, local_paths=False)
        allowed = {0, os.getuid()}
        private = Listener(Router(join(routes, commands)), limits, clock, tell, lambda uid: uid in allowed, arena)
        ending.watch_signals()
        if self._predecessor is not None:
            try:
                await self._take_over(self._predecessor, startup, registry)
            except BaseException:
                await registration.stop(0.0)
                engine.close()
                engine.end()
                raise
            registration.gate.close()  # until the other one knows that it is no longer the daemon
            ours.claim()
        listeners, servers = [private], [await listen_control(private, ours.control)]
        # These limits apply to TCP only, so that the control socket stays reachable under overload.
        receiving, sending = Receiving(config.max_receiving_bytes), Sending(config.max_sending_bytes)
        limits = replace(limits, connections=connections_within(files))
        for endpoint, listening in ours.bound:
            guarded = guard(endpoint, listening, config, tokens)
            size = limits if endpoint.inference or endpoint.management else replace(limits, max_body=_METRICS_BODY)
            router = guarded.router(routes, remote, measured)
            admit = guarded.admit if guarded.asks else None
            public = Listener(
                router, size, clock, tell, storage=arena, admit=admit, receiving=receiving, sending=sending
            )
            listeners.append(public)
            servers.append(await listen(public, listening, tls if endpoint.tls else None))
        for note in config.notes:
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        if startup.empty:
            engine.warm()  # otherwise the loaded models decide which template to warm
        if self._predecessor is not None:
            await self._predecessor.taken()
            ours.ours = True
            registration.gate.open()
        else:
            startup.restore()  # before the first request is read, so that no client gets a 404 for a restored model
        loading = loop.create_task(_load(startup))
        where = (urls.inference, urls.management, urls.metrics, str(config.socket))
        _log.info("listening on %s, pid %d", ", ".join(dict.fromkeys(filter(None, where))), os.getpid())
        ready(
            status_document(config, urls, registry, self._started)
            | {"notes": [*config.notes, *registration.memory.notes]}
        )

        await ending.due(upgrade)
        if self.successor is not None:
            ours.hand_over()
            engine.handed_over()
        ending.close(registration, servers)
        if self.successor is not None:
            await ending.wind_down(upgrade, listeners)
        for listener in listeners:
            listener.stop()
        loading.cancel()
        await ending.finish_forms(turns)
        await ending.stop_models(registration)
        engine.close()
        await ending.let_answers_out(listeners)
        for listener in listeners:
            listener.abort()
        engine.end()
        access_log.close()
        _log.info("stopped")

    async def _take_over(self, predecessor: Predecessor, startup: Startup, registry: Registry) -> None:
        """Load the old daemon's models, and take its place."""

        async def work(report: Report) -> None:
            await load(startup, registry, predecessor.inheritance.models, report)

        taking = asyncio.ensure_future(predecessor.take(work, tsctl_version()))
        try:
            await first(taking, self._ending.wanted.wait())
            if not taking.done():
                raise StartError("the new daemon was told to stop before it had taken over")
            taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)


async def _load(startup: Startup) -> None:
    try:
        if not startup.done:  # otherwise loaded before listening
            await startup.load()
    except Exception:  # noqa: BLE001 - a bug, then: each failed load was reported already
        _log.exception("loading what is served from the start broke off")


def _raise_file_limit() -> int:
    """Raise the limit of open files, which connections need, to the hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
