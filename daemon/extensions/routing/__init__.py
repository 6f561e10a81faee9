"""The requests for a model are shared among its versions by weights, which an operator sets.

http       `/models/MODEL/route`, and its description for OpenAPI

The choice for each request is in daemon/models/routing, where each request passes.
"""

from tsctl.daemon.declarations import MetricRow, Operations
from tsctl.daemon.extension import Extension, Kernel, Service


class RoutingExtension(Extension):
    name = "routing"
    metrics = (  # of models with a route
        MetricRow("tsctl_route_share", "gauge", "Share of the model's requests that the version answers, by the route"),
    )

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.routing.http import route_operations

        return {} if own else route_operations()

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.routing.http import RoutingService

        return RoutingService(kernel)
