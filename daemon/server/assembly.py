"""The assembly of a daemon: its parts, wired. Nothing listens yet, and nothing is started."""

import asyncio
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.lifecycle.boot import Boot
from tsctl.daemon.lifecycle.first_template import raise_file_limit
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.lifecycle.upgrade.successor import Launch
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.kernel import installed, kernel_of
from tsctl.daemon.server.listening import listeners_of
from tsctl.daemon.server.models import Models
from tsctl.daemon.server.observation import observation_of
from tsctl.daemon.server.routes import Tables, tables_of
from tsctl.daemon.server.upgrading import upgrade_of


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a daemon that does not listen yet.

    Attributes:
        services: begun in this order when the daemon listens, and closed in the reverse one when all answers have left.
        notes: sentences for the operator.
    """

    place: Instance
    startup: Startup
    kernel: Kernel
    models: Models
    services: Sequence[Service]
    upgrade: Upgrade
    listening: Sequence[SupervisedListener]
    tables: Tables
    notes: Sequence[str]


def assemble(
    config: Config, launch: Launch, boot: Boot, shutdown: Shutdown, extensions: Sequence[Extension], place: Instance,
    tokens: Tokens, tls: ssl.SSLContext | None, *, foreground: bool,
) -> Parts:  # fmt: skip
    """Make the parts of a daemon.

    Args:
        shutdown: knows whether the daemon is to stop.
        extensions: what the daemon can do beside the core.

    Raises:
        StartError: a package that an address needs is missing, or a file of the configuration cannot be used.
    """
    files = raise_file_limit()  # before any process is started, which inherits the limit
    clock = LoopClock(asyncio.get_running_loop())
    observation = observation_of(config, clock, foreground=foreground)
    bounds = Bounds(config.max_receiving_bytes, config.max_sending_bytes, clock, observation.recurring)
    gpus = Gpus.of_this_machine(clock, os.environ, config.gpus)
    models = Models(config, clock, observation, bounds.arena, launch.template, gpus.names, foreground=foreground)
    with models.ended_on_failure():
        kernel = kernel_of(
            config, tokens, clock, observation, bounds, gpus, models,
            lambda: startup.done and not shutdown.wanted.is_set() and observation.supervision.serving,
        )  # fmt: skip
        kernel.fields.services = services = [*installed(extensions, kernel), observation]
        startup = boot.plan(config, models.registry, models.registrar)
        upgrade = upgrade_of(models, launch, boot, place, lambda: startup.done, lambda: listening)
        tables = tables_of(kernel, upgrade, place.bound)
        listening = listeners_of(place, tables, kernel, models.held.hold, files, tls)
        return Parts(
            place, startup, kernel, models, services, upgrade, listening, tables,
            (
                *config.notes, *tokens.notes, *observation.notes_on(config),
                *(f"warning: {trouble}" for trouble in gpus.troubles),
                *(note for each in services for note in each.notes),
            ),
        )  # fmt: skip
