"""The routes of the inference address: predictions, explanations, health.

    /predictions/MODEL[/VERSION[/…]]     run the model; what follows the version is `url_path`
    /explanations/MODEL[/VERSION[/…]]    the same, with the header `explain` "True"
    /v1/models/MODEL:predict, :explain   KServe, version 1 of its protocol
    /v2/models/MODEL/infer, /explain     KServe, version 2
    /models/MODEL/invoke                 SageMaker; the query's parameters reach the handler
    /invocations[?model_name=MODEL]      SageMaker; without a name the only model
    /ping                                whether every default version has the workers it should have
    OPTIONS of these, /api-description   an OpenAPI description

As in TorchServe any method predicts, but OPTIONS.
"""

from collections.abc import Callable

from daemon.api.openapi_inference import describe_api, describe_model
from daemon.api.predict import parameters_of, predict
from daemon.errors import BadRequest, MethodNotAllowed, ResourceNotFound
from daemon.http.exchange import Exchange
from daemon.http.messages import json_response, status_response
from daemon.http.router import Route
from daemon.models.model import Model, ModelState
from daemon.models.registry import Registry

INVOKE = "invoke"
VERBS = ("predict", "explain")  # of KServe, after a model's name and a colon


def predicts(path: list[str]) -> bool:
    """Whether a path is for these routes, where the management API shares `/models` and `/v1` with them."""
    match path:
        case ["models", _, last]:
            return last == INVOKE
        case ["v1", "models", last]:
            return last.rpartition(":")[2] in VERBS and ":" in last
    return path[:1] not in (["models"], ["v1"])


def inference_routes(registry: Registry, started: Callable[[], bool] = lambda: True) -> dict[str, Route]:
    """Make the routes: first path segment → function.

    Args:
        started: whether everything that is to be served from the start has been registered, or has failed, and the
            daemon is not being stopped.
    """

    def run(
        exchange: Exchange, model: Model, explain: bool, url_path: str | None = None, version: str | None = None
    ) -> None:
        if exchange.request.method == "OPTIONS":
            exchange.respond(json_response(describe_model(model.name)))
            return
        asked = ("explain", "True" if explain else "False")
        injected = (asked,) if url_path is None else (("url_path", url_path), asked)
        predict(exchange, model, parameters_of(exchange), injected, unnamed=version is None, repeatable=not explain)

    def below_a_model(explain: bool) -> Route:
        def route(exchange: Exchange, path: list[str]) -> None:
            if not path:
                raise ResourceNotFound
            if len(path) == 1:
                run(exchange, registry.find(path[0]), explain, "")
            else:
                run(exchange, registry.find(path[0], path[1]), explain, "/".join(path[2:]), path[1])

        return route

    def kserve_v1(exchange: Exchange, path: list[str]) -> None:
        name, colon, verb = path[1].rpartition(":") if len(path) == 2 and path[0] == "models" else ("", "", "")
        if not colon or verb not in VERBS:
            raise ResourceNotFound
        run(exchange, registry.find(name), verb == "explain")

    def kserve_v2(exchange: Exchange, path: list[str]) -> None:
        if len(path) != 3 or path[0] != "models" or path[2] not in ("infer", "explain"):
            raise ResourceNotFound
        run(exchange, registry.find(path[1]), path[2] == "explain")

    def invoke(exchange: Exchange, model: Model) -> None:
        if exchange.request.method == "OPTIONS":
            exchange.respond(json_response(describe_model(model.name)))
            return
        predict(exchange, model, parameters_of(exchange, with_query=True), [])

    def models(exchange: Exchange, path: list[str]) -> None:
        if len(path) != 2 or path[1] != INVOKE:
            raise ResourceNotFound
        invoke(exchange, registry.find(path[0]))

    def invocations(exchange: Exchange, path: list[str]) -> None:
        if path:
            raise ResourceNotFound
        invoke(exchange, registry.find(_named(exchange, registry)))

    def ping(exchange: Exchange, path: list[str]) -> None:
        if path:
            raise ResourceNotFound
        healthy = all(model.healthy for model in registry.defaults())
        exchange.respond(status_response("Healthy" if healthy else "Unhealthy", 200 if healthy else 500))

    def ready(exchange: Exchange, path: list[str]) -> None:
        """`/ready[/MODEL[/VERSION]]`: whether it, or every default version, has a worker that is ready.

        What is listed and not yet unpacked has no version to be asked for: all are ready when it is.
        """
        if len(path) > 2:
            raise ResourceNotFound
        asked = [registry.find(*path)] if path else registry.defaults()
        is_ready = (bool(path) or started()) and all(model.state is ModelState.READY for model in asked)
        exchange.respond(status_response("Ready" if is_ready else "Not ready", 200 if is_ready else 503))

    def live(exchange: Exchange, path: list[str]) -> None:
        """`/live`: that the daemon turns."""
        if path:
            raise ResourceNotFound
        exchange.respond(status_response("Live"))

    def root(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001 - one signature for all
        if exchange.request.method != "OPTIONS":
            raise MethodNotAllowed
        exchange.respond(json_response(describe_api()))

    def api_description(exchange: Exchange, path: list[str]) -> None:
        if path or exchange.request.method != "GET":
            raise ResourceNotFound
        exchange.respond(json_response(describe_api()))

    return {
        "predictions": below_a_model(explain=False),
        "explanations": below_a_model(explain=True),
        "v1": kserve_v1,
        "v2": kserve_v2,
        "models": models,
        "invocations": invocations,
        "ping": ping,
        "ready": ready,
        "live": live,
        "api-description": api_description,
        "": root,
    }


def _named(exchange: Exchange, registry: Registry) -> str:
    """The model that `/invocations` means: by query, by form field, or the only one.

    Raises:
        BadRequest: it is not said, and there is not exactly one.
    """
    name = exchange.request.query.get("model_name")
    if name:
        return name
    fields = {param.name: param.value for param in parameters_of(exchange)}
    if "model_name" in fields:
        return bytes(fields["model_name"]).decode("utf-8", "replace")
    only = registry.defaults()
    if len(only) != 1:
        raise BadRequest("Parameter model_name is required.")
    return only[0].name
