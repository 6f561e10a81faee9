"""The routes of a daemon, the core's and those of its services, by who may ask for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsctl.daemon.api.management.registrations.document import registrations_document
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.api.management.status import settings_document
from tsctl.daemon.api.management.upgrade import upgrade_route
from tsctl.daemon.api.metrics import metrics_routes
from tsctl.daemon.api.observing.batches import batches_routes
from tsctl.daemon.api.observing.live import live_routes
from tsctl.daemon.extension import Audience, Kernel, Service
from tsctl.daemon.http.router import Route, join
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.metrics.machine.host import HostMonitor
from tsctl.daemon.models.archives.store import sizes


@dataclass(frozen=True, slots=True)
class Tables:
    """First path segment → function.

    Attributes:
        clients, managers, metrics: of the addresses with these roles.
        control: of the control socket, beside those of clients.
    """

    clients: Mapping[str, Route]
    managers: Mapping[str, Route]
    metrics: Mapping[str, Route]
    control: Mapping[str, Route]


def tables_of(
    kernel: Kernel,
    services: Sequence[Service],
    events: Mapping[str, Route],
    upgrade: Upgrade,
    status: Callable[[], dict[str, Any]],
    started: float,
) -> Tables:
    """Return the routes.

    Args:
        events: the routes of events.
        status: returns the document of `tsctl status`.
        started: seconds since the epoch.
    """
    registry, registrar, config = kernel.registry, kernel.registrar, kernel.config

    def own(word: str) -> Any | None:
        match word:
            case "status":
                return status()
            case "config":
                return settings_document(config, kernel.tokens)
            case "store":
                return sizes(config.model_store)
            case "registrations":
                return registrations_document(registry, registrar.ledger)
        return None

    metrics: Mapping[str, Route] = {}
    if config.metrics:
        metrics = metrics_routes(registry, kernel.metrics, HostMonitor(), kernel.gpus, kernel.selection)
    managing = join(*(each.routes(Audience.MANAGERS) for each in services))
    control = join(
        events,
        live_routes(registry, registrar, started),
        batches_routes(registry),
        {"tsctl": upgrade_route(upgrade)},
        management_routes(registry, registrar, own, local_paths=True),
        managing,
    )
    clients = join(*(each.routes(Audience.CLIENTS) for each in services), kernel.predictions, metrics)
    remote = join(management_routes(registry, registrar, None, local_paths=False), managing)
    return Tables(clients, remote, metrics, control)
