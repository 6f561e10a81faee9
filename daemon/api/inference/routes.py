"""The routes of the inference address: predictions, explanations, health.

    /predictions/MODEL[/VERSION[/…]]     run the model; the path after the version is `url_path`
    /explanations/MODEL[/VERSION[/…]]    the same, with the header `explain` "True"
    /v1/models/MODEL:predict, :explain   KServe, version 1 of its protocol
    GET /v1/models/MODEL                 the same, whether the model has a ready worker
    /v2/models/MODEL[/versions/VERSION]/infer, /explain    KServe, version 2: a body that is not read
    /models/MODEL/invoke                 SageMaker; the query's parameters reach the handler
    /invocations[?model_name=MODEL]      SageMaker; without a name, the only registered model
    /MODEL[/VERSION]/predict             as before TorchServe 0.1; the query's parameters reach the handler
    /wfpredict/…                         workflows: refused by name
    /ping                                whether every version that answers by default has all its workers
    OPTIONS of these and of /, /api-description   an OpenAPI description

Parameters of the query that a typed handler declares are its inputs, on each of these, and other names are refused.

As in TorchServe, every method but OPTIONS predicts.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from tsctl.daemon.api.inference.forms import Form
from tsctl.daemon.api.inference.openapi import describe_api, describe_model
from tsctl.daemon.api.inference.paths import INVOKE, LEGACY, VERBS
from tsctl.daemon.api.inference.predict import as_instances, parameters_of, predict, with_inputs, with_query
from tsctl.daemon.api.inference.raw_forms import RawForm, take_as_json
from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, ResourceNotFound, WorkflowsNotServed
from tsctl.daemon.core.job import Param
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, json_response, status_response
from tsctl.daemon.http.router import ELSEWHERE, Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import answering, answering_of, are_ready, steer, steer_again
from tsctl.daemon.models.tensors import tensors_of
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared

Work = Coroutine[Any, Any, None] | None
MOST_NAME = 1024  # bytes of a form's field `model_name`
_MODEL_NAME = "model_name"


def inference_routes(
    registry: Registry, started: Callable[[], bool] = lambda: True, turns: Turns | None = None
) -> dict[str, Route]:
    """Return the routes: first path segment → function.

    Args:
        started: returns whether every model to be served from the start is registered or has failed, and the daemon
            is not stopping.
        turns: reads large forms; None for a reader of these routes alone.
    """
    forms = turns or Turns()

    def run(
        exchange: Exchange,
        model: ModelVersion,
        explain: bool,
        url_path: str | None = None,
        version: str | None = None,
        *,
        whole: bool = False,
        kserve_v1: bool = False,
    ) -> Work:
        if exchange.request.method == "OPTIONS":
            exchange.respond(json_response(describe_model(model.name, *tensors_of(model))))
            return None
        asked = ("explain", "True" if explain else "False")
        injected = (asked,) if url_path is None else (("url_path", url_path), asked)
        params = _parameters(exchange.request, model)
        if isinstance(params, list):
            given = _with_inputs(exchange.request, params, model)
            if kserve_v1:
                given = as_instances(given, model.declared)
            repeatable = not explain and given is params  # by its body alone
            unnamed = version is None
            predict(exchange, model, given, injected, unnamed=unnamed, repeatable=repeatable, whole=whole)
            return None
        then = partial(_predict_read, registry, model, version, exchange, injected, not explain, whole)
        return forms.read(params, exchange, model.settings.client_timeout, then)

    def below_a_model(explain: bool) -> Route:
        def route(exchange: Exchange, path: list[str]) -> Work:
            if not path:
                raise ResourceNotFound
            if len(path) == 1:
                return run(exchange, steer(registry, path[0], None, exchange.request), explain, "")
            model = steer(registry, path[0], path[1], exchange.request)
            return run(exchange, model, explain, "/".join(path[2:]), path[1])

        return route

    def kserve_v1(exchange: Exchange, path: list[str]) -> Work:
        name, colon, verb = path[1].rpartition(":") if len(path) == 2 and path[0] == "models" else ("", "", "")
        if path[:1] == ["models"] and len(path) == 2 and not colon:
            tell_readiness(registry, exchange, path)
            return None
        if not colon or verb not in VERBS:
            raise ResourceNotFound
        take_as_json(exchange.request)  # the protocol knows nothing else
        return run(exchange, steer(registry, name, None, exchange.request), verb == "explain", kserve_v1=True)

    def kserve_v2(exchange: Exchange, path: list[str]) -> Work:
        match path:
            case ["models", name, ("infer" | "explain") as verb]:
                return run(exchange, steer(registry, name, None, exchange.request), verb == "explain", whole=True)
            case ["models", name, "versions", version, ("infer" | "explain") as verb]:
                model = steer(registry, name, version, exchange.request)
                return run(exchange, model, verb == "explain", version=version, whole=True)
        raise ResourceNotFound

    def legacy(exchange: Exchange, path: list[str]) -> Work:
        if len(path) not in (2, 3) or path[-1] != LEGACY:
            raise ResourceNotFound
        version = path[1] if len(path) == 3 else None
        return invoke(exchange, steer(registry, path[0], version, exchange.request), version)

    def invoke(exchange: Exchange, model: ModelVersion, version: str | None = None) -> Work:
        if exchange.request.method == "OPTIONS":
            exchange.respond(json_response(describe_model(model.name, *tensors_of(model))))
            return None
        params = _parameters(exchange.request, model)
        if isinstance(params, list):
            predict(exchange, model, _with_all(exchange.request, params, model), [], unnamed=version is None)
            return None
        then = partial(_invoke_read, registry, model, version, exchange)
        return forms.read(params, exchange, model.settings.client_timeout, then)

    def models(exchange: Exchange, path: list[str]) -> Work:
        if len(path) != 2:
            raise ResourceNotFound
        return invoke(exchange, steer(registry, path[0], None, exchange.request))

    def invocations(exchange: Exchange, path: list[str]) -> Work:
        if path:
            raise ResourceNotFound
        name = exchange.request.query.get(_MODEL_NAME)
        if name:
            exchange.request.check_model(name)
            return invoke(exchange, steer(registry, name, None, exchange.request))
        params = parameters_of(exchange.request)
        if isinstance(params, list):
            _invoke_read(registry, None, None, exchange, params)
            return None
        return forms.read(params, exchange, 0.0, partial(_invoke_read, registry, None, None, exchange))

    def ping(exchange: Exchange, path: list[str]) -> None:
        if path:
            raise ResourceNotFound
        healthy = all(model.healthy for model in answering(registry))
        exchange.respond(status_response("Healthy" if healthy else "Unhealthy", 200 if healthy else 500))

    def ready(exchange: Exchange, path: list[str]) -> None:
        """`/ready[/MODEL[/VERSION]]`: 200 if the version, or every one that answers by default, has a ready worker.

        Models that are listed but not yet unpacked have no version; `started` covers them.
        """
        if len(path) > 2:
            raise ResourceNotFound
        asked = answering_of(registry, *path) if path else answering(registry)
        is_ready = (bool(path) or started()) and are_ready(asked)
        exchange.respond(status_response("Ready" if is_ready else "Not ready", 200 if is_ready else 503))

    def live(exchange: Exchange, path: list[str]) -> None:
        """`/live`: 200 while the event loop is running."""
        if path:
            raise ResourceNotFound
        exchange.respond(status_response("Live"))

    def root(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001 - one signature for all
        if exchange.request.method != "OPTIONS":
            raise MethodNotAllowed
        exchange.respond(json_response(describe_api()))

    def api_description(exchange: Exchange, path: list[str]) -> None:
        if path:
            raise ResourceNotFound
        exchange.respond(json_response(describe_api()))

    return {
        "predictions": below_a_model(explain=False),
        "explanations": below_a_model(explain=True),
        "v1": kserve_v1,
        "v2": kserve_v2,
        f"models/*/{INVOKE}": models,
        "invocations": invocations,
        "ping": ping,
        "ready": ready,
        "live": live,
        "api-description": api_description,
        "wfpredict": refuse_workflows,
        "": root,
        ELSEWHERE: legacy,
    }


def tell_readiness(registry: Registry, exchange: Exchange, path: list[str]) -> None:
    """Answer `GET /v1/models/MODEL` of KServe, at addresses of predictions and of management."""
    if path[:1] != ["models"] or len(path) != 2:
        raise ResourceNotFound
    if exchange.request.method != "GET":
        raise MethodNotAllowed
    exchange.respond(json_response({"name": path[1], "ready": are_ready(answering_of(registry, path[1]))}))


def refuse_workflows(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001
    raise WorkflowsNotServed


def _parameters(request: Request, model: ModelVersion) -> list[Param] | Form | RawForm:
    """Return the parameters of a request to this model, as `parameters_of`; count a refusal."""
    try:
        return parameters_of(request, model.declared)
    except BadRequest as error:
        model.metrics.refused(error)
        raise


def _with_inputs(request: Request, params: list[Param], model: ModelVersion, beside: Sequence[str] = ()) -> list[Param]:
    """Return the parameters with those of the query that are the model's inputs; count a refusal."""
    try:
        return with_inputs(request, params, model.declared, beside)
    except BadRequest as error:
        model.metrics.refused(error)
        raise


def _with_all(request: Request, params: list[Param], model: ModelVersion) -> list[Param]:
    """Return the parameters for SageMaker's routes: a handler of TorchServe's form gets all of the query's."""
    declared = model.declared
    if declared is not None and not declared.built_in:
        return _with_inputs(request, params, model, (_MODEL_NAME,))
    return with_query(request, params)


def _predict_read(
    registry: Registry,
    chosen: ModelVersion,
    version: str | None,
    exchange: Exchange,
    injected: Sequence[tuple[str, str]],
    repeatable: bool,
    whole: bool,
    params: list[Param],
) -> None:
    """Predict with the version that was chosen before the form was read, or its replacement."""
    model = steer_again(registry, chosen, version, exchange.request)
    asked = _with_inputs(exchange.request, params, model)
    repeatable = repeatable and asked is params
    predict(exchange, model, asked, injected, unnamed=version is None, repeatable=repeatable, whole=whole)


def _invoke_read(
    registry: Registry, chosen: ModelVersion | None, version: str | None, exchange: Exchange, params: list[Param]
) -> None:
    """Predict for SageMaker's routes; without `chosen`, use the form's `model_name`, or the only registered model."""
    if chosen is None:
        name = _named(registry, params, exchange.request)
        exchange.request.check_model(name)
        model = steer(registry, name, version, exchange.request)
        params = _without_name(params, model.declared)
    else:
        model = steer_again(registry, chosen, version, exchange.request)
    if exchange.request.method == "OPTIONS":
        exchange.respond(json_response(describe_model(model.name, *tensors_of(model))))
    else:
        predict(exchange, model, _with_all(exchange.request, params, model), [], unnamed=version is None)


def _without_name(params: list[Param], declared: Declared | None) -> list[Param]:
    """Return a form without the field that named the model, which a typed handler would refuse."""
    if declared is None or declared.built_in or any(each.name == _MODEL_NAME for each in declared.inputs):
        return params
    return [each for each in params if each.name != _MODEL_NAME]


def _named(registry: Registry, params: list[Param], request: Request) -> str:
    """Return the model's name for `/invocations` without a query: the form's `model_name`, or the only model's.

    Args:
        request: for a known client there are no models but those that its key allows.

    Raises:
        BadRequest: the field is too long, or is missing while not exactly one model is registered.
    """
    for param in params:
        if param.name == _MODEL_NAME:
            if len(param.value) > MOST_NAME:
                raise BadRequest(f"model_name has {len(param.value)} bytes; at most {MOST_NAME} are allowed.")
            return bytes(param.value).decode("utf-8", "replace")
    only = [model for model in registry.defaults() if request.may_see(model.name)]
    if len(only) != 1:
        raise BadRequest("Parameter model_name is required.")
    return only[0].name
