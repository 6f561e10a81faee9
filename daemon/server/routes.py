"""The routes of a daemon, the core's and those of its services, by who may ask for them."""

import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.api.management.commands import ModelRoute
from tsctl.daemon.api.management.describe import with_fields
from tsctl.daemon.api.management.registrations import registrations_document
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.api.management.status import settings_document, status_document, urls_of
from tsctl.daemon.api.management.upgrade import upgrade_routes
from tsctl.daemon.api.metric_selection import selection_of
from tsctl.daemon.api.metrics import metrics_routes
from tsctl.daemon.api.observing.batches import batches_routes
from tsctl.daemon.api.observing.live import live_routes
from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.config.tokens import may_register
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.http.router import Audience, Route, join, resolved
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
        status: returns the document of `tsctl status`.
    """

    clients: Mapping[str, Route]
    managers: Mapping[str, Route]
    metrics: Mapping[str, Route]
    control: Mapping[str, Route]
    status: Callable[[], dict[str, Any]]


class Fields:
    """The fields of all services in the documents of versions, the descriptions of their routes, and their metrics."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def of(self, view: VersionView, model: ModelVersion) -> dict[str, Any]:
        """Return the fields of a version in one of its documents."""
        fields: dict[str, Any] = {}
        for each in self._services:
            fields = with_fields(fields, each.fields(model, view))
        return fields

    def own(self) -> dict[str, Any]:
        """Return the fields of the daemon itself."""
        return dict(chain.from_iterable(each.document().items() for each in self._services))

    def operations(self) -> dict[str, Mapping[str, Operation]]:
        """Return the routes for managers as OpenAPI describes them."""
        tables = (each.routes(Audience.MANAGERS) for each in self._services)
        routes: Iterable[object] = chain.from_iterable(table.values() for table in tables)
        described = (route.operations.items() for route in routes if isinstance(route, ModelRoute))
        return dict(chain.from_iterable(described))

    def families(self, asked: Collection[str] = ()) -> Iterable[MetricFamily]:
        """Return the metrics as they are now, with those that are shown only to clients that ask for these names."""
        for service in self._services:
            rows = service.extension.metrics
            if all(row.asked and row.name not in asked for row in rows):
                continue  # without the work of its samples
            for row, samples in zip(rows, service.samples(), strict=False):  # none of one that has none
                if row.asked and row.name not in asked:
                    continue
                values = [(dict(zip(row.labels, labels, strict=True)), value) for labels, value in samples]
                yield family(row.name, row.kind, row.help, values)


def tables_of(
    kernel: Kernel, services: Sequence[Service], upgrade: Upgrade, bound: Sequence[tuple[Endpoint, socket.socket]]
) -> Tables:
    """Return the routes of a daemon that starts now, and is bound to these addresses."""
    urls, started, begun = urls_of(bound), time.time(), kernel.clock.now()
    registry, registrar, config, observation = kernel.registry, kernel.registrar, kernel.config, kernel.observation
    fields, metrics = Fields(services), dict[str, Route]()

    def overview() -> dict[str, Any]:
        """Return what extensions add, and the seconds since the start, whatever has become of the machine's time."""
        return fields.own() | {"upSeconds": kernel.clock.now() - begun}

    def status() -> dict[str, Any]:
        document = status_document(config, urls, registry, started, fields.of)
        return document | {"gpus": kernel.gpus.document} | observation.supervision.document | overview()

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

    if config.metrics:
        metrics = metrics_routes(
            registry, observation.metrics, HostMonitor(), kernel.gpus, selection_of(config), fields.families
        )
    managing = join(*(each.routes(Audience.MANAGERS) for each in services))
    control = join(
        live_routes(registry, started, fields.of, overview),
        batches_routes(registry),
        upgrade_routes(upgrade),
        *(each.routes(Audience.OPERATORS) for each in services),
        managing,
        management_routes(registry, registrar, own, local_paths=True, fields=fields.of, operations=fields.operations),
    )
    predictions = inference_routes(registry, kernel.ready, kernel.turns)
    clients = join(*(each.routes(Audience.CLIENTS) for each in services), predictions, metrics)
    remote = management_routes(
        registry, registrar, None, local_paths=False, fields=fields.of, operations=fields.operations,
        registers=may_register(config, kernel.tokens),
    )  # fmt: skip
    return Tables(clients, resolved(join(managing, remote)), metrics, control, status)
