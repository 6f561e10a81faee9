"""The routes of the protocol, and Triton's metrics, as a service of the daemon."""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, ResourceNotFound
from tsctl.daemon.declarations import Samples
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.oip import METRICS
from tsctl.daemon.extensions.oip.routes import oip_routes
from tsctl.daemon.extensions.tensors.metadata import statistics_of
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registrar import Registrar, no_progress
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.version import ModelVersion

READY, UNAVAILABLE = "READY", "UNAVAILABLE"  # a version in the repository's index
_LOADING = "load"
_DEPENDENTS = "unload_dependents"  # Triton's clients always send it
_SHOWN = 100  # characters of a name in a message


def repository_routes(registry: Registry, registrar: Registrar) -> dict[str, Route]:
    """Return the routes of the protocol's model repository: which models there are, and their loading and unloading.

        POST   /v2/repository/index                         the registered versions, and whether they are ready
        POST   /v2/repository/models/MODEL/load             start the workers of the default version
        POST   /v2/repository/models/MODEL/unload           stop them; the version stays registered

    Models are registered by other means; here they are loaded, or unloaded until they are loaded here again (`tsctl
    load` and `unload`). The answer comes when the workers are ready. A configuration or files in the request are
    refused.

    Return the route below `/v2` of an address that may manage models, by that segment.
    """

    async def change(exchange: Exchange, name: str, action: str) -> None:
        with registrar.gate.change():
            model = registry.find(name)
            if action == _LOADING:
                await registrar.load(model, synchronous=True, progress=no_progress)
            else:
                await registrar.unload(model)
        exchange.respond(json_response({"name": name, "state": index_entry(model)["state"]}))

    def route(exchange: Exchange, path: list[str]) -> Any:
        match path:
            case ["repository", "index"]:
                action = ""
            case ["repository", "models", _, ("load" | "unload") as action]:
                pass
            case _:
                raise ResourceNotFound
        if exchange.request.method != "POST":
            raise MethodNotAllowed
        if action:
            for key in _member(exchange, "parameters", {}, "an object"):
                if action == _LOADING or key != _DEPENDENTS:  # no model depends on another one here
                    raise BadRequest(
                        f"The request to {action} {path[2]} has the parameter `{key[:_SHOWN]}`; tsctl does not serve"
                        " it: a model's files and settings come from its registration (POST /models) and from PATCH"
                        " /models/MODEL."
                    )
            return change(exchange, path[2], action)
        only_ready = _member(exchange, "ready", False, "true or false")
        entries = [entry for entry in map(index_entry, registry) if not only_ready or entry["state"] == READY]
        exchange.respond(json_response(entries))
        return None

    return {"v2": route}


def index_entry(model: ModelVersion) -> dict[str, str]:
    ready = model.state is ModelState.READY
    return {
        "name": model.name,
        "version": model.version,
        "state": READY if ready else UNAVAILABLE,
        "reason": "" if ready else model.word,
    }


def _member(exchange: Exchange, name: str, usual: Any, kind: str) -> Any:
    """Return the one member that a request's body may have; without it, or as null, what is usual.

    Raises:
        BadRequest: the body is neither empty nor an object with this member, or nothing, in it.
    """
    document = exchange.request.json() if len(exchange.request.body) else {}
    if isinstance(document, dict):
        for each in document:
            if each != name:
                raise BadRequest(f"Unknown member `{each[:_SHOWN]}`; the request has {name}, or nothing.")
        if (member := document.get(name)) is None:
            return usual
        if type(member) is type(usual):
            return member
    raise BadRequest(f"The body is no object with `{name}`: {kind}.")


class OipService(Service):
    def __init__(self, kernel: Kernel) -> None:
        plain = inference_routes(kernel.registry, kernel.ready, kernel.turns)["v2"]
        self._routes: dict[Audience, Mapping[str, Route]] = {
            Audience.CLIENTS: oip_routes(kernel.registry, kernel.ready, plain, kernel.turns),
            Audience.MANAGERS: repository_routes(kernel.registry, kernel.registrar),
        }
        self._registry = kernel.registry

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return self._routes.get(audience, {})

    def samples(self) -> Samples:
        """Yield Triton's metrics of each version, which repeat ours under other names."""
        told = [((each.name, each.version), statistics_of(each) | {"waiting": each.waiting}) for each in self._registry]
        for _, path in METRICS.values():
            yield [(labels, _value(document, path)) for labels, document in told]


def _value(document: dict[str, Any], path: tuple[str, ...]) -> float:
    if len(path) == 1:
        return float(document[path[0]])
    value: int = document["inference_stats"][path[0]][path[1]]
    return value / 1000 if path[1] == "ns" else float(value)
