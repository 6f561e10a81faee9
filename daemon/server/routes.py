"""The routes of a daemon, the core's and those of its services, by who may ask for them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tsctl.daemon.api.management.describe import with_fields
from tsctl.daemon.api.management.registrations import registrations_document
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.api.management.status import settings_document
from tsctl.daemon.api.management.upgrade import upgrade_route
from tsctl.daemon.api.metrics import metrics_routes
from tsctl.daemon.api.observing.batches import batches_routes
from tsctl.daemon.api.observing.live import live_routes
from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.config.tokens import may_register
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.extension import Audience, Kernel, Service
from tsctl.daemon.http.router import Route, join, resolved
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.archives.download import sizes
from tsctl.daemon.models.version import ModelVersion


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


class Fields:
    """The fields of all services in the documents of versions, the descriptions of their routes, and their metrics."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def described(self, model: ModelVersion) -> dict[str, Any]:
        """Return the members of a version's document, and its fields in `tsctl`."""
        fields: dict[str, Any] = {}
        for each in self._services:
            fields = with_fields(fields, each.describe(model))
        return {"tsctl": fields} | dict(chain.from_iterable(each.members(model).items() for each in self._services))

    def settings(self, model: ModelVersion) -> dict[str, Any]:
        """Return the settings of a version's workers that are other than its own."""
        return dict(chain.from_iterable(each.settings(model).items() for each in self._services))

    def listed(self, model: ModelVersion) -> dict[str, Any]:
        """Return the fields of a version in lists."""
        return dict(chain.from_iterable(each.listed(model).items() for each in self._services))

    def live(self, model: ModelVersion) -> dict[str, Any]:
        """Return the fields of a version in `/tsctl/live`."""
        return self.listed(model) | dict(chain.from_iterable(each.live(model).items() for each in self._services))

    def own(self) -> dict[str, Any]:
        """Return the fields of the daemon itself."""
        return dict(chain.from_iterable(each.document().items() for each in self._services))

    def operations(self) -> dict[str, Mapping[str, Operation]]:
        """Return the routes for managers as OpenAPI describes them."""
        return dict(chain.from_iterable(each.operations().items() for each in self._services))

    def families(self, asked: Collection[str] = ()) -> Iterable[MetricFamily]:
        """Return the metrics as they are now, with those that are shown only to clients that ask for these names."""
        for service in self._services:
            if all(row.asked and row.name not in asked for row in service.metrics):
                continue  # without the work of its samples
            for row, samples in zip(service.metrics, service.samples(), strict=False):  # none of one that has none
                if row.asked and row.name not in asked:
                    continue
                values = [(dict(zip(row.labels, labels, strict=True)), value) for labels, value in samples]
                yield family(row.name, row.kind, row.help, values)


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

    fields, metrics = Fields(services), dict[str, Route]()
    if config.metrics:
        metrics = metrics_routes(
            registry, kernel.metrics, HostMonitor(), kernel.gpus, kernel.selection, fields.families
        )
    managing = join(*(each.routes(Audience.MANAGERS) for each in services))
    control = join(
        events,
        live_routes(registry, started, fields.live, fields.own),
        batches_routes(registry),
        {"tsctl": upgrade_route(upgrade)},
        *(each.routes(Audience.OPERATORS) for each in services),
        managing,
        management_routes(
            registry,
            registrar,
            own,
            local_paths=True,
            further=fields.described,
            served=fields.settings,
            operations=fields.operations,
        ),
    )
    clients = join(*(each.routes(Audience.CLIENTS) for each in services), kernel.predictions, metrics)
    remote = join(
        managing,
        management_routes(
            registry,
            registrar,
            None,
            local_paths=False,
            further=fields.described,
            operations=fields.operations,
            registers=may_register(config, kernel.tokens),
        ),
    )
    return Tables(clients, resolved(remote), metrics, control)
