"""The daemon: assembled, brought into service (lifecycle/boot.py), and shut down (lifecycle/shutdown.py)."""

import asyncio
import contextlib
import logging
import os
import resource
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from daemon import paths
from daemon.api.answered import AnsweredRequests
from daemon.api.cors import cors_headers, with_preflight
from daemon.api.grpc.servers import GrpcServers
from daemon.api.guards import guard
from daemon.api.inference.held import HeldRequests
from daemon.api.inference.routes import inference_routes
from daemon.api.inference.turns import Turns
from daemon.api.known_clients import KnownClients
from daemon.api.management.routes import management_routes
from daemon.api.management.status import Urls, settings_document, status_document, tsctl_version, urls_of
from daemon.api.management.upgrade import upgrade_route
from daemon.api.metrics import metrics_routes
from daemon.api.observing.batches import batches_routes
from daemon.api.observing.events import EventsRoute
from daemon.api.observing.live import live_routes
from daemon.api.observing.periodic_metrics import PeriodicMetrics
from daemon.api.oip.repository import repository_routes
from daemon.api.oip.routes import oip_routes
from daemon.api.openai.routes import openai_routes
from daemon.api.room import while_there_is_room
from daemon.api.torchserve_logs import TorchServeLogs, selection_of
from daemon.config.config import Config
from daemon.config.endpoints import choose_endpoints, tls_context
from daemon.config.tokens import Tokens, read_tokens
from daemon.config.worker_env import model_environment
from daemon.config.written import properties_of
from daemon.core import logs
from daemon.core.arena import open_arena
from daemon.core.clock import LoopClock
from daemon.events.events import Events
from daemon.events.journal import Journal
from daemon.events.loop_watch import LoopWatch
from daemon.events.recurring import Recurring
from daemon.http.access_log import AccessLog
from daemon.http.bounds.full import connections_within
from daemon.http.bounds.receiving import ReceiveBudget
from daemon.http.bounds.sending import SendBudget
from daemon.http.limits import HttpLimits
from daemon.http.listener import Listener
from daemon.http.router import Router, join
from daemon.lifecycle.boot import Boot, BootParts, ColdStart, Takeover
from daemon.lifecycle.instance import Instance
from daemon.lifecycle.notify import status_of
from daemon.lifecycle.parent import watch_parent
from daemon.lifecycle.shutdown import Shutdown
from daemon.lifecycle.sockets import listen, listen_control
from daemon.lifecycle.upgrade.messages import Expected
from daemon.lifecycle.upgrade.new import Predecessor
from daemon.lifecycle.upgrade.old import Upgrade
from daemon.lifecycle.upgrade.successor import Launch, NewDaemon, start
from daemon.metrics.machine.gpu import Gpus
from daemon.metrics.machine.host import HostMonitor
from daemon.metrics.metrics import Metrics
from daemon.metrics.recent_timer import RecentTimer
from daemon.models.archives.store import sizes
from daemon.models.persistence.startup import Startup
from daemon.models.persistence.torchserve_snapshots import TorchServeSnapshots
from daemon.models.registrar import Registrar
from daemon.models.registry import Registry
from daemon.tracing.export import TraceExport
from daemon.workers.local_engine import LocalEngine
from daemon.workers.ray.engines import Engines

_METRICS_BODY = 64 * 1024  # bytes: requests for metrics need no body

_log = logging.getLogger("daemon.server")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a daemon that does not listen yet.

    Attributes:
        private: the listener of the control socket.
        public: the listeners of TCP, each with its socket, and its TLS if it has any.
    """

    service: BootParts
    clock: LoopClock
    events: Events
    recurring: Recurring
    watch: LoopWatch
    recent: RecentTimer
    events_route: EventsRoute
    engines: Engines
    access_log: AccessLog
    upgrade: Upgrade
    turns: Turns
    held: HeldRequests
    urls: Urls
    private: Listener
    public: list[tuple[Listener, socket.socket, ssl.SSLContext | None]]
    traces: TraceExport
    torchserve_logs: TorchServeLogs
    periodic: PeriodicMetrics | None
    snapshots: TorchServeSnapshots | None
    grpc: GrpcServers

    @property
    def listeners(self) -> list[Listener]:
        return [self.private, *(listener for listener, _, _ in self.public)]


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
        self._started = time.time()
        self._shutdown = Shutdown(config.grace, paths.pid_file(config.socket), supervised=launch.supervised)

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
            parts = self._assemble(place, tokens, tls, traces)
            servers, loading = await self._serve(parts, ready)
            await self._shut_down(parts, servers, loading)
        finally:
            self._launch.notifier.close()
            place.leave()

    def _assemble(self, place: Instance, tokens: Tokens, tls: ssl.SSLContext | None, traces: TraceExport) -> _Parts:
        config, shutdown, loop = self._config, self._shutdown, asyncio.get_running_loop()
        files = _raise_file_limit()  # before any process is started, which inherits the limit
        clock = LoopClock(loop)
        registry, metrics = Registry(), Metrics()
        events = Events(Journal(paths.events_file(config.state_dir)))
        metrics.events = events.counts
        clients = None if config.keys_file is None else KnownClients(config.keys_file, clock.now, events.add)

        def serves() -> bool:
            return startup.done and not shutdown.wanted.is_set()

        ready = serves if config.ready_when_full else while_there_is_room(serves, registry.defaults)

        recurring = Recurring(events, clock)
        # These limits apply to TCP only, so that the control socket stays reachable under overload.
        receiving = ReceiveBudget(config.max_receiving_bytes, partial(recurring.note, "limit", reason="receiving"))
        note_unread = partial(recurring.note, "limit", reason="sending")
        sending, calls = (SendBudget(config.max_sending_bytes, note_unread) for _ in range(2))
        # Before processes are started, because a package may be missing.
        grpc = GrpcServers(
            config, tokens, registry, ready, clock, receiving, calls, lambda *call: tell(*call), clients
        )
        logs.report_losses(lambda text: _soon(loop, partial(recurring.note, "log-lost", text, reason=text)))

        def note_stall(late: float) -> None:
            metrics.stalled(late)
            recurring.note("loop-stalled", f"the event loop did not turn for {late:.1f} s")

        watch = LoopWatch(clock, note_stall)
        tracing = traces.begin(clock, lambda text: _soon(loop, partial(events.add, "traces-lost", text)))
        metrics.spans = traces.counts
        as_json = config.log_format == "json"
        selection = selection_of(config)
        theirs = TorchServeLogs(config, selection, clock, partial(_soon, loop))
        metrics.log = theirs.metrics
        model_logs = logs.ModelLogs(
            partial(paths.model_log, config.state_dir), foreground=self._foreground, as_json=as_json, copy=theirs.copy
        )
        arena = open_arena()
        if arena is not None:
            arena.soon = clock.soon
        environment = model_environment(os.environ, config)
        engine = LocalEngine(
            loop, clock, environment, arena, template=config.template, alone=True, metrics=config.model_metrics
        )
        engines = Engines(engine, config.ray_address, loop, clock, environment)
        registrar = Registrar(
            config, registry, engines, clock, model_logs, metrics, recurring=recurring, tracing=tracing
        )
        snapshots = None
        if config.log_location is not None and config.restore:
            folder, properties = config.log_location / "config", properties_of(config)
            snapshots = TorchServeSnapshots(folder, registry, config.model_store, properties)
        startup = self._boot.plan(config, registry, registrar)
        access_log = AccessLog(paths.access_log(config.state_dir), clock, foreground=self._foreground, as_json=as_json)
        lines = access_log if config.access_log else None
        tell = AnsweredRequests(metrics, recurring, lines, theirs.answered).note
        urls = urls_of(place.bound)

        def own(word: str) -> Any | None:
            match word:
                case "status":
                    return status_document(config, urls, registry, self._started, grpc.urls)
                case "config":
                    return settings_document(config, tokens)
                case "store":
                    return sizes(config.model_store)
            return None

        def start_new(python: str | None, models: list[Expected]) -> NewDaemon:
            stand_in = self._boot.has_stand_in or self._launch.supervised
            new = start(self._launch, python, place.inheritance(models, stand_in=stand_in))
            engine.spare(new.pid)
            return new

        upgrade = Upgrade(registry, registrar, start_new, lambda: startup.done, place.claim, tsctl_version())
        gpus = Gpus.of_this_machine(clock)
        measured = metrics_routes(registry, metrics, HostMonitor(), gpus, selection) if config.metrics else {}
        turns = Turns(clock.now)
        routes = inference_routes(registry, ready, turns) | measured
        routes |= oip_routes(registry, ready, config.max_request_size, routes["v2"], turns)
        routes = join(openai_routes(registry), routes)
        events_route = EventsRoute(events, clock)
        commands = join(
            events_route.routes,
            live_routes(registry, self._started),
            batches_routes(registry),
            {"tsctl": upgrade_route(upgrade)},
            management_routes(registry, registrar, own, local_paths=True),
            repository_routes(registry, registrar),
        )
        remote = join(
            management_routes(registry, registrar, None, local_paths=False), repository_routes(registry, registrar)
        )
        grpc.manage(remote)
        limits = HttpLimits(config.max_request_size, config.header_timeout, config.body_timeout, config.keep_alive)
        allowed = {0, os.getuid()}
        held = HeldRequests(registry, clock, config.queue_jobs, config.queue_bytes)
        local = Router(join(routes, commands), held.take)
        private = Listener(local, limits, clock, tell, lambda uid: uid in allowed, arena)
        limits = replace(limits, connections=connections_within(files))
        public = []
        for endpoint, listening in place.bound:
            guarded = guard(endpoint, listening, config, tokens, clients, clock.now)
            size = limits if endpoint.inference or endpoint.management else replace(limits, max_body=_METRICS_BODY)
            cors = cors_headers(config) if endpoint.inference and not endpoint.management else ()
            router = guarded.router(routes, remote, measured, held.take)
            listener = Listener(
                with_preflight(router) if cors else router, size, clock, tell, storage=arena,
                admit=guarded.admit if guarded.asks else None, receiving=receiving, sending=sending,
                full=partial(events.add, "limit"), headers=cors,
            )  # fmt: skip
            public.append((listener, listening, tls if endpoint.tls else None))
        service = BootParts(place, registry, registrar, startup, metrics)
        recent = RecentTimer(metrics, clock)
        periodic = None
        if theirs.metrics is not None:
            interval = None if config.disable_system_metrics else config.metric_time_interval
            periodic = PeriodicMetrics(theirs.metrics, registry, events, HostMonitor(), gpus, clock, interval)
        return _Parts(
            service, clock, events, recurring, watch, recent, events_route, engines, access_log, upgrade, turns, held,
            urls, private, public, traces, theirs, periodic, snapshots, grpc,
        )  # fmt: skip

    async def _serve(
        self, parts: _Parts, ready: Callable[[dict[str, Any]], None]
    ) -> tuple[list[asyncio.Server], asyncio.Task[None]]:
        """Serve until the daemon must end; return what listens, and the loading of the first models."""
        config, service, engine = self._config, parts.service, parts.engines.local
        startup, registrar = service.startup, service.registrar
        self._shutdown.watch_signals()
        parts.watch.begin()
        parts.recent.begin()
        if parts.periodic is not None:
            parts.periodic.begin()
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
        servers = [await listen_control(parts.private, service.place.control)]
        servers += [await listen(listener, listening, tls) for listener, listening, tls in parts.public]
        for note in (*config.notes, *parts.traces.notes):
            kind, _, sentence = note.partition(": ")
            _log.log(logging.WARNING if kind == "warning" else logging.INFO, sentence)
        if startup.empty:
            engine.warm()  # otherwise the loaded models decide which template to warm
        await self._boot.begin(service)
        await parts.grpc.start()
        loading = asyncio.get_running_loop().create_task(_load(startup, registrar, parts.snapshots))
        urls = parts.urls
        where = (urls.inference, urls.management, urls.metrics, str(config.socket))
        addresses = ", ".join(dict.fromkeys(filter(None, (*where, *parts.grpc.urls))))
        parts.events.add("started", f"listening on {addresses}, pid {os.getpid()}, tsctl {tsctl_version()}")
        ready(
            status_document(config, urls, service.registry, self._started, parts.grpc.urls)
            | {"notes": [*config.notes, *parts.traces.notes, *registrar.ledger.memory.notes]}
        )
        where_asked = urls.inference or str(config.socket)
        self._launch.notifier.begin(parts.clock, partial(status_of, service.registry, where_asked))
        await self._shutdown.due(parts.upgrade)
        return servers, loading

    async def _shut_down(self, parts: _Parts, servers: list[asyncio.Server], loading: asyncio.Task[None]) -> None:
        shutdown, listeners, registrar = self._shutdown, parts.listeners, parts.service.registrar
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
        parts.events_route.close()
        parts.held.close()
        shutdown.close(registrar, servers)
        calls = asyncio.ensure_future(parts.grpc.close(self._config.grace))  # they end when their jobs do
        if self.successor is not None:
            await shutdown.wind_down(parts.upgrade, listeners)
        for listener in listeners:
            listener.stop()
        loading.cancel()
        await shutdown.finish_forms(parts.turns)
        await shutdown.stop_models(registrar)
        await calls
        parts.engines.close()
        await shutdown.let_answers_out(listeners)
        await parts.upgrade.report_counts()
        for listener in listeners:
            listener.abort()
        parts.engines.local.end()
        parts.traces.close()
        parts.access_log.close()
        if parts.periodic is not None:
            parts.periodic.close()
        parts.watch.close()
        parts.recent.close()
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
    except Exception:  # noqa: BLE001 - a bug, then: each failed load was reported already
        _log.exception("loading what is served from the start broke off")
    if snapshots is not None:
        snapshots.write("startup", registrar.ledger.unsettled)
        registrar.ledger.saved = snapshots.changed


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Make a call on the loop: the caller may be another thread, or in the midst of logging."""
    loop.call_soon_threadsafe(call)


def _raise_file_limit() -> int:
    """Raise the limit of open files, which connections need, to the hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
