"""The assembly of a daemon: its parts, wired. Nothing listens yet, and nothing is started."""

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.api.answered import AnsweredRequests
from tsctl.daemon.api.cors import cors_headers, with_preflight
from tsctl.daemon.api.grpc.servers import GrpcServers
from tsctl.daemon.api.guards import guard
from tsctl.daemon.api.inference.held import HeldRequests
from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.api.known_clients import KnownClients
from tsctl.daemon.api.management.registrations.document import registrations_document
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.api.management.status import Urls, settings_document, status_document, tsctl_version, urls_of
from tsctl.daemon.api.management.upgrade import upgrade_route
from tsctl.daemon.api.metrics import metrics_routes
from tsctl.daemon.api.observing.batches import batches_routes
from tsctl.daemon.api.observing.events import EventsRoute
from tsctl.daemon.api.observing.live import live_routes
from tsctl.daemon.api.observing.periodic_metrics import PeriodicMetrics
from tsctl.daemon.api.oip.repository import repository_routes
from tsctl.daemon.api.oip.routes import oip_routes
from tsctl.daemon.api.openai.routes import openai_routes
from tsctl.daemon.api.room import while_there_is_room
from tsctl.daemon.api.torchserve_logs import TorchServeLogs, selection_of
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import address_of
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.config.written import properties_of
from tsctl.daemon.core import logs
from tsctl.daemon.core.arena import open_arena
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.journal import Journal
from tsctl.daemon.events.loop_watch import LoopWatch
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.http.access_log import AccessLog
from tsctl.daemon.http.bounds.full import connections_within
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.bounds.trimming import Trimming
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.router import Router, join
from tsctl.daemon.lifecycle.boot import Boot, BootParts
from tsctl.daemon.lifecycle.early import raise_file_limit
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.printed import PrintedLog
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.lifecycle.supervision import BackgroundService, Supervision
from tsctl.daemon.lifecycle.upgrade.messages import Expected
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.lifecycle.upgrade.successor import Launch, NewDaemon, start
from tsctl.daemon.metrics.machine.gpu import Gpus
from tsctl.daemon.metrics.machine.host import HostMonitor
from tsctl.daemon.metrics.machine.memory import memory_of
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.recent_timer import RecentTimer
from tsctl.daemon.models.archives.store import sizes
from tsctl.daemon.models.optimizing.trials import AutoOptimizing
from tsctl.daemon.models.persistence.torchserve_snapshots import TorchServeSnapshots
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.models.scaling.autoscaling import Autoscaling
from tsctl.daemon.tracing.export import TraceExport
from tsctl.daemon.workers.local_engine import LocalEngine
from tsctl.daemon.workers.ray.engines import Engines

_METRICS_BODY = 64 * 1024  # bytes: requests for metrics need no body


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a daemon that does not listen yet.

    Attributes:
        services: begun in this order before anything listens, and closed in the reverse one when all answers have left.
        listeners: of the control socket, and of TCP.
        listening: the same at their sockets, in the same order; begun by `supervision`, as gRPC's servers are.
    """

    service: BootParts
    clock: LoopClock
    events: Events
    recurring: Recurring
    supervision: Supervision
    services: tuple[BackgroundService, ...]
    trials: AutoOptimizing
    events_route: EventsRoute
    engines: Engines
    access_log: AccessLog
    upgrade: Upgrade
    turns: Turns
    held: HeldRequests
    urls: Urls
    listeners: list[Listener]
    listening: list[SupervisedListener]
    traces: TraceExport
    torchserve_logs: TorchServeLogs
    snapshots: TorchServeSnapshots | None
    grpc: GrpcServers


class Assembly:
    """Makes the parts of a daemon.

    Args:
        shutdown: knows whether the daemon is to stop.

    Attributes:
        started: wall-clock seconds since the epoch.
    """

    def __init__(self, config: Config, launch: Launch, boot: Boot, shutdown: Shutdown, *, foreground: bool) -> None:
        self._config = config
        self._launch = launch
        self._boot = boot
        self._shutdown = shutdown
        self._foreground = foreground
        self.started = time.time()

    def parts(self, place: Instance, tokens: Tokens, tls: ssl.SSLContext | None, traces: TraceExport) -> Parts:
        """Make the parts of a daemon.

        Raises:
            StartError: a package that an address needs is missing, or a file of the configuration cannot be used.
        """
        config, shutdown, loop = self._config, self._shutdown, asyncio.get_running_loop()
        files = raise_file_limit()  # before any process is started, which inherits the limit
        clock = LoopClock(loop)
        registry, metrics = Registry(), Metrics()
        events = Events(Journal(paths.events_file(config.state_dir)))
        metrics.events = events.counts
        clients = None if config.keys_file is None else KnownClients(config.keys_file, clock.now, events.add)

        def serves() -> bool:
            return startup.done and not shutdown.wanted.is_set() and supervision.serving

        ready = serves if config.ready_when_full else while_there_is_room(serves, partial(answering, registry))

        recurring = Recurring(events, clock)
        supervision = Supervision(recurring, clock, metrics)
        # These limits apply to TCP only, so that the control socket stays reachable under overload.
        note_spent = partial(recurring.note, "limit", reason="receiving")
        trimming = Trimming(clock)
        receiving = ReceiveBudget(config.max_receiving_bytes, note_spent, trimming.note)
        note_unread = partial(recurring.note, "limit", reason="sending")
        sending, calls = (SendBudget(config.max_sending_bytes, note_unread, trimming.note) for _ in range(2))
        arena = open_arena()
        if arena is not None:
            arena.soon = clock.soon
        take = None if arena is None else arena.take
        # Before processes are started, because a package may be missing.
        grpc = GrpcServers(
            config, tokens, registry, ready, clock, receiving, calls, lambda *call: tell(*call), clients, take
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
        environment = model_environment(os.environ, config)
        engine = LocalEngine(
            loop, clock, environment, arena, template=config.template, alone=True, metrics=config.model_metrics,
            started=self._launch.template,
        )  # fmt: skip
        engines = Engines(engine, config.ray_address, loop, clock, environment)
        registrar = Registrar(
            config, registry, engines, clock, model_logs, metrics, recurring=recurring, tracing=tracing
        )
        registrar.residency.templates, registrar.residency.meter = engine.templates, memory_of
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
                    return status_document(config, urls, registry, self.started, grpc.urls) | supervision.document
                case "config":
                    return settings_document(config, tokens)
                case "store":
                    return sizes(config.model_store)
                case "registrations":
                    return registrations_document(registry, registrar.ledger)
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
        routes |= oip_routes(registry, ready, config.max_request_size, routes["v2"], turns, receiving, take)
        routes = join(openai_routes(registry, turns), routes)
        events_route = EventsRoute(events, clock)
        commands = join(
            events_route.routes,
            live_routes(registry, registrar, self.started),
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
        listeners = [private]
        listening_at = [SupervisedListener(f"control socket {config.socket}", private, place.control, control=True)]
        for endpoint, listening in place.bound:
            guarded = guard(endpoint, listening, config, tokens, clients, clock.now)
            size = limits if endpoint.inference or endpoint.management else replace(limits, max_body=_METRICS_BODY)
            size = replace(size, pages=guarded.pages)
            cors = cors_headers(config) if endpoint.inference and not endpoint.management else ()
            router = guarded.router(routes, remote, measured, held.take)
            listener = Listener(
                with_preflight(router) if cors else router, size, clock, tell, storage=arena,
                admit=guarded.admit if guarded.asks else None, receiving=receiving, sending=sending,
                full=partial(events.add, "limit"), headers=cors,
            )  # fmt: skip
            listeners.append(listener)
            name = f"{'HTTPS' if endpoint.tls else 'HTTP'} {address_of(listening, '').removeprefix('://')}"
            listening_at.append(SupervisedListener(name, listener, listening, tls if endpoint.tls else None))
        service = BootParts(place, registry, registrar, startup, metrics)
        services: list[BackgroundService] = [watch, RecentTimer(metrics, clock), Autoscaling(registry, clock)]
        if not self._foreground:
            services.append(PrintedLog(clock))
        if theirs.metrics is not None:
            interval = None if config.disable_system_metrics else config.metric_time_interval
            services.append(PeriodicMetrics(theirs.metrics, registry, events, HostMonitor(), gpus, clock, interval))
        return Parts(
            service, clock, events, recurring, supervision, tuple(services),
            AutoOptimizing(registry, registrar, config, clock), events_route, engines, access_log, upgrade, turns, held,
            urls, listeners, listening_at, traces, theirs, snapshots, grpc,
        )  # fmt: skip


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Make a call on the loop: the caller may be another thread, or in the midst of logging."""
    loop.call_soon_threadsafe(call)
