"""The OpenAPI description of the inference address, the answer to `OPTIONS /` and `/api-description`."""

from collections.abc import Sequence
from typing import Any

from tsctl.daemon.api.openapi import (
    STATUS,
    STRING,
    UNKNOWN_CALLER,
    Operation,
    answer,
    body,
    document,
    operation,
    path_parameters,
    query_parameters,
)
from tsctl.daemon.model_settings.declarations import DeclaredTensor
from tsctl.daemon.tables import PROTOCOLS

_FAILURES = UNKNOWN_CALLER | {
    "400": "The request is malformed.",
    "404": "The model, version or route does not exist.",
    "408": "The request arrived too slowly.",
    "413": "The body is too large.",
    "415": "The body is in another Content-Encoding than gzip and deflate.",
    "500": "The worker exited, or exceeded the response timeout.",
    "503": "No worker is ready, the queue is full, or the handler raised.",
    "504": "The request's deadline has passed.",
    "507": "Out of memory, or the worker was killed by another process.",
}
_HEADERS = [
    {
        "name": "x-request-deadline-ms",
        "in": "header",
        "description": "Deadline: milliseconds from the receipt of the headers to the answer; then 504.",
        "schema": {"type": "integer", "minimum": 1},
    },
    {
        "name": "x-request-priority",
        "in": "header",
        "description": "Requests of low priority yield to others, for a limited time.",
        "schema": {"type": "string", "enum": ["low", "normal"], "default": "normal"},
    },
]
# The name of the operation (`operationId`) → path, with its parameters.
_PREDICTIONS = {
    "predict": "/predictions/{model_name}",
    "predictVersion": "/predictions/{model_name}/{model_version}",
    "explain": "/explanations/{model_name}",
    "explainVersion": "/explanations/{model_name}/{model_version}",
    "kserveV1Predict": "/v1/models/{model_name}:predict",
    "kserveV1Explain": "/v1/models/{model_name}:explain",
    "kserveV2Infer": "/v2/models/{model_name}/infer",
    "kserveV2InferVersion": "/v2/models/{model_name}/versions/{model_version}/infer",
    "kserveV2Explain": "/v2/models/{model_name}/explain",
    "invoke": "/models/{model_name}/invoke",
    "invocations": "/invocations",
}
_READINESS = {"200": "The version has a ready worker.", "503": "The version has no ready worker."}
# Health: name of the operation → path, descriptions by status.
_HEALTH = {
    "ping": ("/ping", {"200": "Every default version has all its workers.", "500": "A default version lacks workers."}),
    "ready": (
        "/ready",
        {"200": "Every default version has a ready worker.", "503": "A default version has no ready worker."},
    ),
    "readyModel": ("/ready/{model_name}", _READINESS),
    "readyVersion": ("/ready/{model_name}/{model_version}", _READINESS),
    "live": ("/live", {"200": "The event loop is running."}),
}


def describe_api() -> dict[str, Any]:
    """Return the description of every route of the inference address."""
    paths = {path: {"post": prediction(name, path)} for name, path in _PREDICTIONS.items()}
    paths |= {path: {"get": _health(name, path, texts)} for name, (path, texts) in _HEALTH.items()}
    paths["/v1/models/{model_name}"] = {
        "get": about("kserveV1Model", "/v1/models/{model_name}", "Whether the model has a ready worker.")
    }
    itself = answer("This description.", {"type": "object"})
    unknown = UNKNOWN_CALLER | {"400": "The request is malformed."}
    own = {"/api-description": {"get": operation("apiDescription", [], {"200": itself}, unknown)}}
    return document(paths, *(each.operations() for each in PROTOCOLS), own)


def describe_model(
    name: str, inputs: Sequence[DeclaredTensor] = (), outputs: Sequence[DeclaredTensor] = ()
) -> dict[str, Any]:
    """Return the description of the routes of one model.

    Args:
        inputs: the declared ones; empty for none. So are `outputs`.
    """
    chosen = [(operation, path) for operation, path in _PREDICTIONS.items() if path.endswith("/{model_name}")]
    filled = {operation: path.replace("{model_name}", name) for operation, path in chosen}
    described = {path: {"post": prediction(operation, path)} for operation, path in filled.items()}
    for protocol in PROTOCOLS:
        described |= {path: {**each} for path, each in protocol.operations_of(name, inputs, outputs).items()}
    return document(described)


def prediction(name: str, path: str) -> Operation:
    """Return the description of a route that runs a model; `name` is the operation's."""
    query = query_parameters({"model_name": STRING} if name == "invocations" else {})
    told = {"200": answer("The handler's answer; handlers may set another status.", None, "*/*")}
    failures = _FAILURES | ({"501": "The model answers in pieces."} if name.startswith("kserve") else {})
    described = operation(name, path_parameters(path) + query + _HEADERS, told, failures)
    return {**described, "requestBody": body("The input of the model's handler.")}


def about(name: str, path: str, text: str) -> Operation:
    """Return the description of a route that answers with a document; `text` says of what."""
    failures = UNKNOWN_CALLER | ({"404": _FAILURES["404"]} if "{" in path else {})
    told = {"200": answer(text, {"type": "object"})}
    if path.endswith("ready"):
        told |= {"503": answer("It is not ready.", {"type": "object"})}
    return operation(name, path_parameters(path), told, failures)


def _health(name: str, path: str, texts: dict[str, str]) -> Operation:
    failures = {"400": _FAILURES["400"]} | ({"404": _FAILURES["404"]} if "{" in path else {})
    told = {status: answer(text, STATUS) for status, text in texts.items()}
    if "{" in path:  # a model that is being registered is not ready, which an error says
        told["503"] = answer(texts["503"], {"type": "object"})
    return operation(name, path_parameters(path), told, failures)
