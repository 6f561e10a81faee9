"""The OpenAPI description of the inference address, the answer to `OPTIONS /` and `/api-description`."""

from typing import Any

from daemon.api.openapi import (
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

_FAILURES = UNKNOWN_CALLER | {
    "400": "The request cannot be understood.",
    "404": "No such model, version or route.",
    "408": "The request came too slowly.",
    "413": "The body is too large.",
    "500": "The worker went away, or took too long.",
    "503": "No worker is ready, the queue is full, or the handler failed.",
    "504": "The time that the request could take is over.",
    "507": "Out of memory, or the worker was killed from outside.",
}
_HEADERS = [
    {
        "name": "x-request-deadline-ms",
        "in": "header",
        "description": "Milliseconds from the receipt of the headers to the answer, at most; then 504.",
        "schema": {"type": "integer", "minimum": 1},
    },
    {
        "name": "x-request-priority",
        "in": "header",
        "description": "Requests of low priority let others go before them, for a while.",
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
    "kserveV2Explain": "/v2/models/{model_name}/explain",
    "invoke": "/models/{model_name}/invoke",
    "invocations": "/invocations",
}
# Health: name of the operation → path, descriptions by status.
_HEALTH = {
    "ping": ("/ping", {"200": "Every default version has its workers.", "500": "One has not."}),
    "ready": ("/ready", {"200": "Every default version has a ready worker.", "503": "One has not."}),
    "readyModel": ("/ready/{model_name}", {"200": "It has a ready worker.", "503": "It has none."}),
    "readyVersion": ("/ready/{model_name}/{model_version}", {"200": "It has a ready worker.", "503": "It has none."}),
    "live": ("/live", {"200": "The daemon turns."}),
}


def describe_api() -> dict[str, Any]:
    """Return the description of every route of the inference address."""
    paths = {path: {"post": _prediction(name, path)} for name, path in _PREDICTIONS.items()}
    paths |= {path: {"get": _health(name, path, texts)} for name, (path, texts) in _HEALTH.items()}
    metrics = answer("Prometheus text, of the metrics that are asked for by `name[]`.", STRING, "text/plain")
    itself = answer("This description.", {"type": "object"})
    unknown = UNKNOWN_CALLER | {"400": "The request cannot be understood."}
    paths["/metrics"] = {"get": operation("metrics", [], {"200": metrics}, unknown)}
    paths["/api-description"] = {"get": operation("apiDescription", [], {"200": itself}, unknown)}
    return document(paths)


def describe_model(name: str) -> dict[str, Any]:
    """Return the description of the routes of one model."""
    chosen = [(operation, path) for operation, path in _PREDICTIONS.items() if path.endswith("/{model_name}")]
    filled = {operation: path.replace("{model_name}", name) for operation, path in chosen}
    return document({path: {"post": _prediction(operation, path)} for operation, path in filled.items()})


def _prediction(name: str, path: str) -> Operation:
    query = query_parameters({"model_name": STRING} if name == "invocations" else {})
    told = {"200": answer("What the handler answers; it may choose another status.", None, "*/*")}
    described = operation(name, path_parameters(path) + query + _HEADERS, told, _FAILURES)
    return {**described, "requestBody": body("What the model's handler takes.")}


def _health(name: str, path: str, texts: dict[str, str]) -> Operation:
    failures = {"400": _FAILURES["400"]} | ({"404": _FAILURES["404"]} if "{" in path else {})
    return operation(
        name, path_parameters(path), {status: answer(text, STATUS) for status, text in texts.items()}, failures
    )
