"""The daemon: build everything, listen, say so, serve, stop in order.

Stop, in this order: accept no connection → what waits and runs finishes within the grace time →
workers leave, leftovers are killed → logs are written → the socket and the locks go. A second
signal to stop cuts the grace time short.
"""

import asyncio
import contextlib
import logging
import os
import re
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from daemon import logs, paths
from daemon.api.inference import inference_routes
from daemon.api.management import management_routes
from daemon.api.metrics import metrics_routes
from daemon.clock import LoopClock
from daemon.config import Config
from daemon.endpoints import Endpoint, bind_endpoints, choose_endpoints, guarded_router, listen, tls_context
from daemon.environment import model_environment
from daemon.http.limits import HttpLimits
from daemon.http.listener import Listener
from daemon.http.messages import Request
from daemon.http.router import Router, join
from daemon.metrics.gpu import Gpus
from daemon.metrics.host import Host
from daemon.metrics.metrics import Metrics
from daemon.models.registration import Registration
from daemon.models.registry import Registry
from daemon.models.startup import Startup
from daemon.models.store import sizes
from daemon.settings import SETTINGS
from daemon.sockets import address_of, bind_control, bind_tcp, parse_address, take_place, unlink_if_ours
from daemon.tokens import Tokens, read_tokens
from daemon.workers.local import LocalEngine

_log = logging.getLogger("daemon.server")


def tsctl_version() -> str:
    """The installed version, or `unknown` in an uninstalled tree."""
    try:
        return version("tsctl")
    except PackageNotFoundError:
        return "unknown"


class Daemon:
    """One running daemon. `run` returns when it has stopped."""

    def __init__(self, config: Config, *, foreground: bool) -> None:
        self._config = config
        self._foreground = foreground
        self._started = time.time()
        self._stops = 0
        self._stop_wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._inference_url = ""
        self._management_url: str | None = None
        self._metrics_url: str | None = None
        self._tokens = Tokens()
        self._tls: ssl.SSLContext | None = None

    async def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Serve until a signal to stop.

        Args:
            ready: told, once, that the daemon listens, and where.

        Raises:
            StartError: it cannot listen.
        """
        config = self._config
        self._tokens = read_tokens(config, os.environ)
        endpoints = choose_endpoints(config)
        self._tls = tls_context(config)
        locks = take_place(config.socket, config.state_dir)
        try:
            bound = list(zip(endpoints, bind_endpoints(endpoints), strict=True))
            own = _own_metrics_address(config)
            measured = None if own is None else bind_tcp(own)
            control, inode = bind_control(config.socket)
            try:
                logs.set_up(config.state_dir, config.log_level, foreground=self._foreground)
                self._note_urls(bound)
                self._metrics_url = None if measured is None else address_of(measured)
                await self._serve(bound, control, measured, ready)
            finally:
                unlink_if_ours(config.socket, inode)
        finally:
            for lock in locks:
                lock.release()

    def _note_urls(self, bound: Sequence[tuple[Endpoint, socket.socket]]) -> None:
        for endpoint, listening in bound:
            url = address_of(listening, "https" if endpoint.tls else "http")
            if endpoint.inference:
                self._inference_url = url
            if endpoint.management:
                self._management_url = url

    async def _serve(
        self,
        bound: Sequence[tuple[Endpoint, socket.socket]],
        control: socket.socket,
        measured: socket.socket | None,
        ready: Callable[[dict[str, Any]], None],
    ) -> None:
        config, loop = self._config, asyncio.get_running_loop()
        _raise_file_limit()
        clock = LoopClock(loop)
        registry, metrics = Registry(), Metrics()
        model_logs = logs.ModelLogs(config.state_dir, foreground=self._foreground)
        engine = LocalEngine(loop, clock, model_environment(os.environ, config), template=config.template)
        registration = Registration(config, registry, engine, clock, model_logs, metrics)
        registration.clean()
        access_log = logs.AccessLog(paths.access_log(config.state_dir), clock, foreground=self._foreground)

        def access(request: Request, status: int, seconds: float) -> None:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
            what = f'"{request.method} {request.target}" {status} {seconds * 1000:.1f}ms'
            line = f"{stamp} {request.peer} {what} {request.id}"
            access_log.add(line if line.isprintable() else ascii(line)[1:-1])

        def own(word: str) -> Any | None:
            match word:
                case "status":
                    return self._status(registry)
                case "config":
                    return self._settings()
                case "store":
                    return sizes(config.model_store)
            return None

        limits = HttpLimits(config.max_request_size, config.header_timeout, config.body_timeout, config.keep_alive)
        write = access if config.access_log else _no_access

        def tell(request: Request, status: int, seconds: float) -> None:
            metrics.answered(status)
            write(request, status, seconds)

        own_routes = metrics_routes(registry, metrics, Host(), Gpus.of_this_machine(clock)) if config.metrics else {}
        routes = inference_routes(registry) | own_routes
        commands = management_routes(registry, registration, own, local_paths=True)
        allowed = {0, os.getuid()}
        private = Listener(Router(join(routes, commands)), limits, clock, tell, peer_allowed=lambda uid: uid in allowed)
        listeners, servers = [private], [await loop.create_unix_server(private.connect, sock=control)]
        remote = management_routes(registry, registration, None, local_paths=False)
        for endpoint, listening in bound:
            application = guarded_router(endpoint, listening, config, self._tokens, routes, remote)
            public = Listener(application, limits, clock, tell)
            listeners.append(public)
            servers.append(await listen(public, listening, self._tls if endpoint.tls else None))
        if measured is not None:
            observed = Listener(Router(own_routes), limits, clock, tell)
            listeners.append(observed)
            servers.append(await loop.create_server(observed.connect, sock=measured))
        for note in config.notes:
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        startup = Startup(config, registry, registration)
        startup.restore()  # before the first request is read, so that nobody is told that there is no such model
        loading = loop.create_task(startup.load())
        loading.add_done_callback(_tell_failure)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        where = (self._inference_url, self._management_url, str(config.socket))
        _log.info("listening on %s, pid %d", ", ".join(dict.fromkeys(filter(None, where))), os.getpid())
        ready(self._status(registry) | {"notes": config.notes})
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

    def _status(self, registry: Registry) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "version": tsctl_version(),
            "python": sys.version.split()[0],
            "started": self._started,
            "inferenceAddress": self._inference_url,
            "managementAddress": self._management_url,
            "metricsAddress": self._metrics_url,
            "socket": str(self._config.socket),
            "stateDir": str(self._config.state_dir),
            "modelStore": None if self._config.model_store is None else str(self._config.model_store),
            "grace": self._config.grace,
            "models": [
                {
                    "name": model.name,
                    "version": model.version,
                    "default": registry.is_default(model),
                    "state": model.state.value,
                    "ready": model.pool.ready,
                    "wanted": model.pool.wanted,
                    "batchSize": model.settings.batch_size,
                    "maxBatchDelay": round(model.settings.max_delay * 1000, 3),
                    "arrivalsPerSecond": round(model.traffic.rate_at(model.clock.now()), 3),
                    "policy": model.settings.policy,
                    "queued": len(model.queue),
                    "running": model.dispatcher.running,
                    "url": model.source.url,
                }
                for model in registry
            ],
        }

    def _settings(self) -> list[dict[str, Any]]:
        secrets = [
            {"name": name, "value": "set", "origin": origin} for name, origin in sorted(self._tokens.origins.items())
        ]
        return secrets + [
            {
                "name": setting.name,
                "value": _plain(getattr(self._config, setting.name)),
                "origin": self._config.origins[setting.name],
            }
            for setting in SETTINGS
        ]


def _own_metrics_address(config: Config) -> str | None:
    """The address that answers only /metrics; None if there is none, or it is the inference address."""
    address = config.metrics_address if config.metrics else None
    if address is None:
        return None
    wanted = parse_address(address)
    return None if wanted[1] and wanted == parse_address(config.inference_address) else address


def _tell_failure(task: asyncio.Task[None]) -> None:
    """A bug, then: what could not be loaded was told already, one by one."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("loading what is served from the start broke off", exc_info=error)


def _no_access(request: Request, status: int, seconds: float) -> None:
    """The access log is off."""


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [*value]
    if isinstance(value, re.Pattern):
        return value.pattern
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _raise_file_limit() -> None:
    """A connection is a descriptor: take as many as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
