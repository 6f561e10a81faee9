"""`/models/MODEL/route`: how the requests for a model are shared among its versions.

GET      the route, and the default version
PUT      set the route: `weights`, `sticky`, `shadow`, `sample`, `allow_effects`, by query or as JSON
DELETE   remove the route; the default version answers
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tsctl.daemon.api.management.commands import ModelRoute, Parameters, finished
from tsctl.daemon.api.openapi import BOOLEAN, STATUS, STRING, Operation, Schema, members
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed
from tsctl.daemon.declarations import Samples, VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response, status_response
from tsctl.daemon.http.router import Audience
from tsctl.daemon.http.router import Route as HttpRoute
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.changes import RouteChanges
from tsctl.daemon.models.routing.route import Route, parse_route, shown_route
from tsctl.daemon.models.version import ModelVersion

ROUTE = "route"
_PATH = f"/models/{{model_name}}/{ROUTE}"
# The parameters, by query or as members of a JSON object, in which `weights` may be an object, too.
_SETTING: dict[str, Schema] = {
    "weights": STRING, "sticky": STRING, "shadow": STRING, "sample": STRING, "allow_effects": BOOLEAN,
}  # fmt: skip
_SHOWN = members(
    {
        "modelName": STRING, "default": STRING,
        "route": {
            "type": "object", "nullable": True, "required": ["weights"],
            "properties": {
                "weights": {"type": "object", "additionalProperties": {"type": "number"}}, "sticky": STRING,
                "shadow": STRING, "sample": {"type": "number"}, "allow_effects": BOOLEAN,
            },
        },
    }
)  # fmt: skip


def route_operations() -> Mapping[str, Mapping[str, Operation]]:
    """Return the description of the route."""
    return {
        _PATH: {
            "get": finished("showRoute", _PATH, _SHOWN),
            "put": finished("setRoute", _PATH, STATUS, _SETTING, "weights"),
            "delete": finished("removeRoute", _PATH, STATUS),
        }
    }


async def answer_route(registry: Registry, changes: RouteChanges, exchange: Exchange, path: list[str]) -> None:
    """Answer a request for the route of a model.

    Raises:
        DaemonError: the change is refused, as `RouteChanges`.
        MethodNotAllowed: the method is none of the three.
    """
    name = path[0]
    match exchange.request.method:
        case "GET" | "HEAD":
            exchange.respond(json_response(route_document(registry, name)))
        case "PUT":
            route = route_of(Parameters(exchange.request))
            await changes.set(name, route)
            exchange.respond(status_response(f'Requests for model "{name}" are routed: {route}'))
        case "DELETE":
            await changes.remove(name)
            version = registry.find(name).version
            exchange.respond(status_response(f'Model "{name}" has no route: version {version} answers'))
        case _:
            raise MethodNotAllowed


def route_of(given: Parameters) -> Route:
    """Return the route that a request's parameters describe.

    Raises:
        BadRequest: a parameter is missing or invalid.
    """
    weights = given.value("weights")
    if not isinstance(weights, str | dict) or not weights:
        raise BadRequest("weights is missing; expected VERSION=WEIGHT, such as 1.0=90,2.0=10.")
    sample = given.value("sample")
    if isinstance(sample, bool) or not isinstance(sample, str | int | float | None):
        raise BadRequest(f"sample is {sample!r}; expected a share such as 5% or 0.05.")
    return parse_route(
        weights,
        given.text("sticky") or "",
        given.text("shadow") or "",
        None if sample == "" else sample,
        allow_effects=bool(given.read("allow_effects", Boolean())),
    )


def route_document(registry: Registry, name: str) -> dict[str, Any]:
    """Return the route of a model as clients read and set it; `route` is null without one.

    Raises:
        ModelNotFound: no model has this name.
    """
    default = next(model.version for model in registry.versions(name) if registry.is_default(model))
    route = registry.routes.of(name)
    return {"modelName": name, "default": default, "route": None if route is None else shown_route(route)}


class RoutingService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry = kernel.registry
        answer = partial(answer_route, kernel.registry, kernel.registrar.routes)
        self._route = ModelRoute(kernel.registrar, ROUTE, answer)

    def routes(self, audience: Audience) -> Mapping[str, HttpRoute]:
        return {f"models/*/{ROUTE}": self._route} if audience is Audience.MANAGERS else {}

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        """Return the part of its model's requests, from 0 to 1; the route, or whether the version gets copies."""
        if view in (VersionView.MEMBERS, VersionView.WORKER) or (route := self._registry.routes.of(model.name)) is None:
            return {}
        share = {"share": route.share(model.version)}
        if view is VersionView.DESCRIPTION:
            return {"route": shown_route(route)} | share
        return share | {"shadow": route.shadow == model.version}

    def samples(self) -> Samples:
        routed = [(model, self._registry.routes.of(model.name)) for model in self._registry]
        shares = (((each.name, each.version), route.share(each.version)) for each, route in routed if route is not None)
        return (shares,)
