"""An OpenAPI 3 description of the inference address, as `OPTIONS /` and `/api-description` answer it."""

from typing import Any

from daemon.api.setting import PARAMETERS

_ERROR = {
    "type": "object",
    "required": ["code", "type", "message"],
    "properties": {"code": {"type": "integer"}, "type": {"type": "string"}, "message": {"type": "string"}},
}
_FAILURES = {
    "400": "The request cannot be understood.",
    "404": "No such model, version or route.",
    "500": "The worker went away, or took too long.",
    "503": "No worker is ready, the queue is full, or the handler failed.",
}
_TOO_LATE = {"504": "The time that the request could take is over."}
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
# What `operationId` and the parameters are made of: name of the operation → path.
_OPERATIONS = {
    "predict": "/predictions/{model_name}",
    "predictVersion": "/predictions/{model_name}/{model_version}",
    "explain": "/explanations/{model_name}",
    "explainVersion": "/explanations/{model_name}/{model_version}",
    "kserveV1Predict": "/v1/models/{model_name}:predict",
    "kserveV1Explain": "/v1/models/{model_name}:explain",
    "kserveV2Infer": "/v2/models/{model_name}/infer",
    "invoke": "/models/{model_name}/invoke",
    "invocations": "/invocations",
}
_COMMANDS = {
    "/models": {"get": "listModels", "post": "registerModel"},
    "/models/{model_name}": {
        "get": "describeModel",
        "put": "scaleModel",
        "patch": "setModel",
        "delete": "unregisterModel",
    },
    "/models/{model_name}/{model_version}": {
        "get": "describeVersion",
        "put": "scaleVersion",
        "patch": "setVersion",
        "delete": "unregisterVersion",
    },
    "/models/{model_name}/{model_version}/set-default": {"put": "setDefault"},
    "/models/{model_name}/{model_version}/retry": {"post": "retryVersion"},
}


# What registering takes by query, or as members of a JSON object: name → JSON type.
_REGISTERING = {
    "url": "string",
    "model_name": "string",
    "handler": "string",
    "runtime": "string",
    "batch_size": "integer",
    "max_batch_delay": "number",
    "batching": "string",
    "initial_workers": "integer",
    "response_timeout": "number",
    "startup_timeout": "number",
    "queue_timeout": "number",
    "optimize": "string",
    "synchronous": "boolean",
    "replace": "boolean",
}


def describe_api() -> dict[str, Any]:
    """Describe every route of the inference address."""
    paths: dict[str, Any] = {path: {"post": _prediction(name, path)} for name, path in _OPERATIONS.items()}
    paths["/ping"] = {"get": _health()}
    return _document(paths)


def describe_management() -> dict[str, Any]:
    """Describe the management API."""
    paths = {
        path: {method: _command(name, path) for method, name in methods.items()} for path, methods in _COMMANDS.items()
    }
    return _document(paths)


def describe_model(name: str) -> dict[str, Any]:
    """Describe the routes of one model."""
    chosen = [(operation, path) for operation, path in _OPERATIONS.items() if path.endswith("/{model_name}")]
    paths = {}
    for operation, path in chosen:
        filled = path.replace("{model_name}", name)
        paths[filled] = {"post": _prediction(operation, filled)}
    return _document(paths)


def _document(paths: dict[str, Any]) -> dict[str, Any]:
    return {
        "openapi": "3.0.1",
        "info": {"title": "tsctl API", "version": "1.0.0", "description": "PyTorch models, served in batches."},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }


def _prediction(operation: str, path: str) -> dict[str, Any]:
    any_body = {"schema": {"type": "string", "format": "binary"}}
    return {
        "operationId": operation,
        "parameters": _path_parameters(path) + _HEADERS,
        "requestBody": {"description": "What the model's handler takes.", "content": {"*/*": any_body}},
        "responses": {"200": {"description": "What the handler answers.", "content": {"*/*": any_body}}}
        | _failures(_FAILURES | _TOO_LATE),
    }


def _command(operation: str, path: str) -> dict[str, Any]:
    document = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": operation,
        "parameters": _path_parameters(path) + _query_parameters(operation),
        "responses": {"200": {"description": "Done.", "content": document}} | _failures(_FAILURES),
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part.partition("}")[0] for part in path.split("{")[1:]]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(operation: str) -> list[dict[str, Any]]:
    types: dict[str, str] = {}
    if operation == "registerModel":
        types = _REGISTERING
    elif operation == "retryVersion":
        types = {"synchronous": "boolean"}
    elif operation in ("setModel", "setVersion"):
        types = {name: kind for name, (_, kind, _) in PARAMETERS.items()}
    return [
        {"name": name, "in": "query", "schema": {"type": kind}, **({"required": True} if name == "url" else {})}
        for name, kind in types.items()
    ]


def _failures(failures: dict[str, str]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": text, "content": error} for status, text in failures.items()}


def _health() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"status": {"type": "string"}}}
    content = {"application/json": {"schema": schema}}
    return {
        "operationId": "ping",
        "responses": {
            "200": {"description": "Every default version has its workers.", "content": content},
            "500": {"description": "One has not.", "content": content},
        },
    }
