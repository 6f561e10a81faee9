"""The routes of a daemon, the core's and those of its services, by who may ask for them."""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.api.management.events import events_routes
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.api.management.status import settings_document, status_document, urls_of
from tsctl.daemon.api.management.upgrade import upgrade_routes
from tsctl.daemon.config.endpoints import Endpoint
from tsctl.daemon.config.tokens import may_register
from tsctl.daemon.extension import Kernel
from tsctl.daemon.http.router import Audience, Route, join, resolved
from tsctl.daemon.models.archives.download import sizes


@dataclass(frozen=True, slots=True)
class Tables:
    """First path segment → function.

    Attributes:
        clients, managers, metrics: of the addresses with these roles.
        control: of the control socket.
        status: returns the document of `tsctl status`.
    """

    clients: Mapping[str, Route]
    managers: Mapping[str, Route]
    metrics: Mapping[str, Route]
    control: Mapping[str, Route]
    status: Callable[[], dict[str, Any]]


def tables_of(
    kernel: Kernel, upgrade: Callable[..., Awaitable[dict[str, Any]]], bound: Sequence[tuple[Endpoint, socket.socket]]
) -> Tables:
    """Return the routes of a daemon that is bound to these addresses; `upgrade` as of `upgrade_routes`."""
    urls = urls_of(bound)
    registry, registrar, config, observation = kernel.registry, kernel.registrar, kernel.config, kernel.observation
    fields, services = kernel.fields, kernel.fields.services

    def status() -> dict[str, Any]:
        document = status_document(config, urls, registry, fields.started, fields.of)
        return document | {"gpus": kernel.gpus.document} | observation.supervision.document | fields.own()

    def own(word: str) -> Any | None:
        match word:
            case "status":
                return status()
            case "config":
                return settings_document(config, kernel.tokens)
            case "store":
                return sizes(config.model_store)
        return None

    managing = join(*(each.routes(Audience.MANAGERS) for each in services))
    predictions = inference_routes(registry, kernel.ready, kernel.turns)
    clients = join(*(each.routes(Audience.CLIENTS) for each in services), predictions)
    control = join(
        *(each.routes(Audience.OPERATORS) for each in services),
        clients,
        upgrade_routes(upgrade),
        managing,
        events_routes(observation.events),
        management_routes(registry, registrar, own, local_paths=True, fields=fields.of),
    )
    metrics = join(*(each.routes(Audience.SCRAPERS) for each in services))
    remote = management_routes(
        registry, registrar, None, local_paths=False, fields=fields.of, registers=may_register(config, kernel.tokens)
    )  # fmt: skip
    return Tables(clients, resolved(join(managing, remote)), metrics, control, status)
