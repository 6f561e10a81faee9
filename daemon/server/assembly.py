"""The assembly of a daemon: its parts, wired. Nothing listens yet, and nothing is started."""

import asyncio
import os
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.api.answered import AnsweredRequests
from tsctl.daemon.api.inference.held import HeldRequests
from tsctl.daemon.api.management.status import status_document, urls_of
from tsctl.daemon.api.observing.events import EventsRoute
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.http.access_log import AccessLog
from tsctl.daemon.lifecycle.boot import Boot, BootParts
from tsctl.daemon.lifecycle.early import raise_file_limit
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.printed import PrintedLog
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.upgrade.successor import Launch
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.kernel import installed, kernel_of
from tsctl.daemon.server.listening import listeners_of
from tsctl.daemon.server.models import Models
from tsctl.daemon.server.observation import BackgroundService, Observation
from tsctl.daemon.server.parts import Parts
from tsctl.daemon.server.routes import Fields, tables_of
from tsctl.daemon.server.upgrading import upgrade_of


@dataclass(frozen=True, slots=True)
class Assembly:
    """Makes the parts of a daemon.

    Attributes:
        shutdown: knows whether the daemon is to stop.
        extensions: what the daemon can do beside the core.
    """

    config: Config
    launch: Launch
    boot: Boot
    shutdown: Shutdown
    extensions: Sequence[Extension]
    foreground: bool

    def parts(self, place: Instance, tokens: Tokens, tls: ssl.SSLContext | None) -> Parts:
        """Make the parts of a daemon.

        Raises:
            StartError: a package that an address needs is missing, or a file of the configuration cannot be used.
        """
        config, loop, started = self.config, asyncio.get_running_loop(), time.time()
        files = raise_file_limit()  # before any process is started, which inherits the limit
        for extension in self.extensions:
            extension.prepare(config)
        clock = LoopClock(loop)
        observation = Observation(paths.events_file(config.state_dir), clock, loop)
        bounds = Bounds(config.max_receiving_bytes, config.max_sending_bytes, clock, observation.recurring)
        template = self.launch.template
        gpus = Gpus.of_this_machine(clock, os.environ, config.gpus)
        models = Models(config, clock, observation, bounds.arena, template, gpus.names, foreground=self.foreground)
        known = [each.clients(config, clock, observation.events) for each in self.extensions]
        clients = next((each for each in known if each is not None), None)  # of the first that knows any
        as_json = config.log_format == "json"
        access_log = AccessLog(paths.access_log(config.state_dir), clock, foreground=self.foreground, as_json=as_json)
        lines = access_log if config.access_log else None
        requests = AnsweredRequests(observation.metrics, observation.recurring, lines)
        kernel = kernel_of(
            config, tokens, clients, clock, observation, bounds, gpus, models,
            lambda: startup.done and not self.shutdown.wanted.is_set() and observation.supervision.serving,
            requests, lambda: tables.managers,
        )  # fmt: skip
        extended = [*installed(self.extensions, kernel).values()]
        startup = self.boot.plan(config, models.registry, models.registrar)
        urls = urls_of(place.bound)

        def status() -> dict[str, Any]:
            document = status_document(config, urls, models.registry, started, Fields(extended).listed)
            document["gpus"] = gpus.document
            return document | observation.supervision.document | Fields(extended).own()

        upgrade = upgrade_of(models, self.launch, self.boot, place, lambda: startup.done, lambda: listening.at_sockets)
        events = EventsRoute(observation.events, clock)
        tables = tables_of(kernel, extended, events.routes, upgrade, status, started)
        held = HeldRequests(models.registry, clock, config.queue_jobs, config.queue_bytes)
        listening = listeners_of(place, tables, kernel, bounds, requests.note, held.take, files, tls)
        printed = PrintedLog(clock)
        services = [
            *extended,
            *observation.services(),
            BackgroundService(close=access_log.close),
            BackgroundService(printed.begin, close=printed.close) if not self.foreground else Service(),
            BackgroundService(settle=events.close),
        ]
        booted = BootParts(place, models.registry, models.registrar, startup, observation.metrics)
        return Parts(
            booted, kernel, observation, models, services, held, upgrade, urls, listening, status,
            (*config.notes, *tokens.notes, *(f"warning: {trouble}" for trouble in gpus.troubles)),
        )  # fmt: skip
