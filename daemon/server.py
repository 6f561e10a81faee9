"""The daemon: build everything, listen, say so, serve, stop in order.

Stop, in this order: accept no connection → what waits and runs finishes within the grace time →
workers leave, leftovers are killed → logs are written → the socket and the locks go. A second
signal to stop cuts the grace time short.
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from daemon import logs, paths
from daemon.access import AccessLog
from daemon.api.inference import inference_routes
from daemon.api.management import management_routes
from daemon.api.metrics import metrics_routes
from daemon.arena import open_arena
from daemon.clock import LoopClock
from daemon.config import Config
from daemon.endpoints import Endpoint, bind_endpoints, choose_endpoints, listen, tls_context
from daemon.environment import model_environment
from daemon.guards import guard
from daemon.http.full import connections_within
from daemon.http.limits import HttpLimits
from daemon.http.listener import Listener
from daemon.http.messages import Request
from daemon.http.receiving import Receiving
from daemon.http.router import Router, join
from daemon.metrics.gpu import Gpus
from daemon.metrics.host import Host
from daemon.metrics.metrics import Metrics
from daemon.models.registration import Registration
from daemon.models.registry import Registry
from daemon.models.startup import Startup
from daemon.models.store import sizes
from daemon.sockets import address_of, bind_control, take_place, unlink_if_ours
from daemon.status import Urls, settings_document, status_document
from daemon.tokens import Tokens, read_tokens
from daemon.workers.local import LocalEngine

_METRICS_BODY = 64 * 1024  # bytes: who asks for metrics has nothing to say

_log = logging.getLogger("daemon.server")


class Daemon:
    """One running daemon. `run` returns when it has stopped."""

    def __init__(self, config: Config, *, foreground: bool) -> None:
        self._config = config
        self._foreground = foreground
        self._started = time.time()
        self._stops = 0
        self._stop_wanted = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Serve until a signal to stop.

        Args:
            ready: told, once, that the daemon listens, and where.

        Raises:
            StartError: it cannot listen.
        """
        config = self._config
        tokens = read_tokens(config, os.environ)
        endpoints = choose_endpoints(config)
        tls = tls_context(config)
        locks = take_place(config.socket, config.state_dir)
        try:
            bound = list(zip(endpoints, bind_endpoints(endpoints), strict=True))
            control, inode = bind_control(config.socket)
            try:
                logs.set_up(config.state_dir, config.log_level, foreground=self._foreground)
                await self._serve(bound, control, tokens, tls, ready)
            finally:
                unlink_if_ours(config.socket, inode)
        finally:
            for lock in locks:
                lock.release()

    async def _serve(
        self,
        bound: Sequence[tuple[Endpoint, socket.socket]],
        control: socket.socket,
        tokens: Tokens,
        tls: ssl.SSLContext | None,
        ready: Callable[[dict[str, Any]], None],
    ) -> None:
        config, loop = self._config, asyncio.get_running_loop()
        files = _raise_file_limit()
        clock = LoopClock(loop)
        registry, metrics = Registry(), Metrics()
        model_logs = logs.ModelLogs(config.state_dir, foreground=self._foreground)
        arena = open_arena()
        engine = LocalEngine(loop, clock, model_environment(os.environ, config), arena, template=config.template)
        registration = Registration(config, registry, engine, clock, model_logs, metrics)
        registration.clean()
        startup = Startup(config, registry, registration)
        access_log = AccessLog(paths.access_log(config.state_dir), clock, foreground=self._foreground)
        urls = _urls(bound)

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

        limits = HttpLimits(config.max_request_size, config.header_timeout, config.body_timeout, config.keep_alive)
        measured = metrics_routes(registry, metrics, Host(), Gpus.of_this_machine(clock)) if config.metrics else {}
        routes = inference_routes(registry, lambda: startup.done) | measured
        commands = management_routes(registry, registration, own, local_paths=True)
        remote = management_routes(registry, registration, None, local_paths=False)
        allowed = {0, os.getuid()}
        private = Listener(Router(join(routes, commands)), limits, clock, tell, lambda uid: uid in allowed, arena)
        listeners, servers = [private], [await loop.create_unix_server(private.connect, sock=control)]
        # Of what comes by TCP: an operator is always heard.
        receiving, limits = (
            Receiving(config.max_receiving_bytes),
            replace(limits, connections=connections_within(files)),
        )
        for endpoint, listening in bound:
            guarded = guard(endpoint, listening, config, tokens)
            size = limits if endpoint.inference or endpoint.management else replace(limits, max_body=_METRICS_BODY)
            router = guarded.router(routes, remote, measured)
            admit = guarded.admit if guarded.asks else None
            public = Listener(router, size, clock, tell, storage=arena, admit=admit, receiving=receiving)
            listeners.append(public)
            servers.append(await listen(public, listening, tls if endpoint.tls else None))
        for note in config.notes:
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        if startup.empty:
            engine.warm()  # else the models that are loaded say what they need
        startup.restore()  # before the first request is read, so that nobody is told that there is no such model
        loading = loop.create_task(startup.load())
        loading.add_done_callback(_tell_failure)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        where = (urls.inference, urls.management, urls.metrics, str(config.socket))
        _log.info("listening on %s, pid %d", ", ".join(dict.fromkeys(filter(None, where))), os.getpid())
        ready(status_document(config, urls, registry, self._started) | {"notes": config.notes})
        await self._stop_wanted.wait()
        _log.info("stopping; running requests have %g s", config.grace)
        for server in servers:
            server.close()
        for listener in listeners:
            listener.stop()
        loading.cancel()
        await self._stop_models(registration)
        engine.close()
        await self._let_answers_out(*listeners)
        for listener in listeners:
            listener.abort()
        access_log.close()
        _log.info("stopped")

    async def _stop_models(self, registration: Registration) -> None:
        stopping = asyncio.ensure_future(registration.stop(self._config.grace))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((stopping, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not stopping.done():
            stopping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stopping
            await registration.stop(0.0)
        else:
            stopping.result()

    async def _let_answers_out(self, *listeners: Listener) -> None:
        """Give the last answers a moment to leave for clients that read them."""
        for _ in range(50):
            if self._hurry.is_set() or not any(listener.connections for listener in listeners):
                return
            await asyncio.sleep(0.02)

    def _signalled(self) -> None:
        self._stops += 1
        self._stop_wanted.set()
        if self._stops > 1:
            self._hurry.set()


def _urls(bound: Sequence[tuple[Endpoint, socket.socket]]) -> Urls:
    """Say where each role is answered; metrics only where they have an address of their own, or share management's."""
    found: dict[str, str] = {}
    for endpoint, listening in bound:
        url = address_of(listening, "https" if endpoint.tls else "http")
        found |= dict.fromkeys(endpoint.roles - ({"metrics"} if endpoint.inference else set()), url)
    return Urls(**found)


def _tell_failure(task: asyncio.Task[None]) -> None:
    """A bug, then: what could not be loaded was told already, one by one."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("loading what is served from the start broke off", exc_info=error)


def _raise_file_limit() -> int:
    """A connection is a descriptor: take as many as the hard limit allows, and say how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
