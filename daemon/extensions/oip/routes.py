"""The routes of the Open Inference Protocol, version 2, on the inference address.

    GET    /v2                                              the server's name, version and extensions
    GET    /v2/health/live, /v2/health/ready                as /live and /ready, as JSON
    GET    /v2/models/MODEL[/versions/VERSION]              the names and types of its tensors
    GET    …/ready, …/config, …/stats; /v2/models/stats     readiness; Triton's model configuration and statistics
    POST   …/infer                                          run the model
    any    …/explain                                        run its explanation
    POST   …/generate, …/generate_stream                    Triton's, for models that declare a text (generate.py)

What Triton has beside, shared memory, traces and logging, is refused by name.
Health needs no token, as `/ping`. The repository's routes are management.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, ResourceNotFound
from tsctl.daemon.extensions.oip.generate import GENERATE, STREAM, generate
from tsctl.daemon.extensions.oip.infer import infer
from tsctl.daemon.extensions.tensors.metadata import model_config, model_metadata, server_metadata, statistics_of
from tsctl.daemon.extensions.tensors.triton_refusals import unserved
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, check_query, json_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import Steered, answering, answering_of, are_ready
from tsctl.daemon.models.version import ModelVersion

_READING = ("GET", "HEAD")
_RUNS = ("infer", "explain")
_TEXTS = (GENERATE, STREAM)
_ABOUT = (*_RUNS, *_TEXTS, "ready", "config", "stats")

Document = tuple[dict[str, Any], int]  # and its status


class RepositoryElsewhere(ResourceNotFound):
    """The model repository is asked for where no models are managed."""

    sentence = "The model repository is part of management: ask at `--management-address`, or the control socket."


def oip_routes(
    registry: Registry,
    started: Callable[[], bool],
    plain: Route,
    turns: Turns | None = None,
) -> dict[str, Route]:
    """Return the route below `/v2`, by that segment.

    Args:
        started: returns whether every model to be served from the start is registered or has failed, and the daemon
            is not stopping.
        plain: the route of requests whose body goes to the model as it is.
        turns: reads large requests; None for a reader of these routes alone.
    """
    turns = turns or Turns()

    def ready() -> bool:
        return started() and are_ready(answering(registry))

    def about_server(path: list[str], client: LimitedClient | None) -> Document | None:
        match path:
            case []:
                return server_metadata(), 200
            case ["health", "live"]:
                return {"live": True}, 200
            case ["health", "ready"]:
                return {"ready": ready()}, 200 if ready() else 503
            case ["models", "stats"]:
                versions = [each for each in registry if client is None or client.may_use(each.name)]
                return {"model_stats": list(map(statistics_of, versions))}, 200
        return None

    def about_model(model: ModelVersion, named: bool, what: str) -> Document:
        versions = [model] if named else registry.versions(model.name)
        match what:
            case "ready":
                is_ready = are_ready([model] if named else answering_of(registry, model.name))
                return {"name": model.name, "ready": is_ready}, 200 if is_ready else 503
            case "config":
                return model_config(model), 200
            case "stats":
                return {"model_stats": list(map(statistics_of, versions))}, 200
        return model_metadata(model, versions), 200

    def route(exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None] | None:
        _check_served(path)
        asked = _Asked.of(path)
        method = exchange.request.method
        told = about_server(path, exchange.request.client)
        if asked is None and told is None:
            raise ResourceNotFound
        if told is None and asked is not None and asked.what in (*_RUNS, *_TEXTS):
            if asked.what in _RUNS and method == "OPTIONS":
                return plain(exchange, path)
            if asked.what in _TEXTS and method != "POST":
                raise MethodNotAllowed
            find, unnamed = Steered(registry, asked.name, asked.version, exchange.request), asked.version is None
            _check_query(exchange.request, find)
            if asked.what in _TEXTS:
                return generate(exchange, find, turns, stream=asked.what == STREAM, unnamed=unnamed)
            as_it_is = partial(plain, exchange, path)
            return infer(exchange, find, turns, as_it_is, explain=asked.what == "explain", unnamed=unnamed)
        if method not in _READING:
            raise MethodNotAllowed
        if told is None and asked is not None:
            told = about_model(registry.find(asked.name, asked.version), asked.version is not None, asked.what)
        assert told is not None
        exchange.respond(json_response(*told))
        return None

    return {"v2": route}


def _check_query(request: Request, find: Steered) -> None:
    """Raise BadRequest for a query, which no route that runs a model takes; count it for the model."""
    try:
        check_query(request, (), "this route")
    except BadRequest as error:
        find().metrics.refused(error)
        raise


def _check_served(path: list[str]) -> None:
    """Raise NotServed for a path of an extension of Triton's that is not served; or RepositoryElsewhere."""
    word = path[0] if path else ""
    if word == "models" and "trace" in path[2:]:
        word = "trace"
    refused = unserved(word)
    if refused is not None:
        raise refused
    if word == "repository":
        raise RepositoryElsewhere  # an address of management has a route for it, which is asked next


class _Asked(NamedTuple):
    """A path below a model: `what` is empty for the metadata."""

    name: str
    version: str | None
    what: str

    @classmethod
    def of(cls, path: list[str]) -> "_Asked | None":
        match path:
            case ["models", name]:
                return cls(name, None, "")
            case ["models", name, "versions", version]:
                return cls(name, version, "")
            case ["models", name, what] if what in _ABOUT:
                return cls(name, None, what)
            case ["models", name, "versions", version, what] if what in _ABOUT:
                return cls(name, version, what)
        return None
