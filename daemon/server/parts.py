"""The parts of a daemon, as its life needs them (daemon.py)."""

from collections.abc import Sequence
from dataclasses import dataclass

from tsctl.daemon.api.inference.held import HeldRequests
from tsctl.daemon.api.management.status import Urls
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.lifecycle.boot import BootParts
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.server.listening import DaemonListeners
from tsctl.daemon.server.models import Models
from tsctl.daemon.server.routes import Tables


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a daemon that does not listen yet.

    Attributes:
        services: begun in this order when the daemon listens, and closed in the reverse one when all answers have left.
        notes: sentences for the operator.
    """

    service: BootParts
    kernel: Kernel
    models: Models
    services: Sequence[Service]
    held: HeldRequests
    upgrade: Upgrade
    urls: Urls
    listening: DaemonListeners
    tables: Tables
    notes: Sequence[str]
