"""The routes of models as a service of the daemon: set by commands, and shown at each version."""

from collections.abc import Iterable, Mapping
from typing import Any

from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.extension import Audience, Kernel, MetricRow, Service
from tsctl.daemon.extensions.routing.http import RouteOfModels, route_operations
from tsctl.daemon.http.router import Route as HttpRoute
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.routing.route import shown_route
from tsctl.daemon.models.version import ModelVersion


class RoutingService(Service):
    """The service.

    Args:
        metric: the row of the shares.
    """

    def __init__(self, kernel: Kernel, metric: MetricRow) -> None:
        self._metric = metric
        self._registry = kernel.registry
        self._route = RouteOfModels(kernel.registry, kernel.registrar)

    def routes(self, audience: Audience) -> Mapping[str, HttpRoute]:
        return {"models": self._route} if audience is Audience.MANAGERS else {}

    def operations(self) -> Mapping[str, Mapping[str, Operation]]:
        return route_operations()

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        route = self._registry.routes.of(model.name)
        return {} if route is None else {"route": shown_route(route), "share": route.share(model.version)}

    def listed(self, model: ModelVersion) -> Mapping[str, Any]:
        """Return the part of its model's requests, from 0 to 1, and whether the version gets copies of requests."""
        route = self._registry.routes.of(model.name)
        return {} if route is None else {"share": route.share(model.version), "shadow": route.shadow == model.version}

    def families(self) -> Iterable[MetricFamily]:
        routed = [(model, self._registry.routes.of(model.name)) for model in self._registry]
        samples = [
            ({"model": model.name, "version": model.version}, route.share(model.version))
            for model, route in routed
            if route is not None
        ]
        yield family(self._metric.name, self._metric.kind, self._metric.help, samples)
