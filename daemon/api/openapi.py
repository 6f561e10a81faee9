"""Building blocks of the OpenAPI 3 descriptions of all addresses."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
Operation = dict[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
SECONDS: Schema = {"type": "number", "minimum": 0}
STATUS: Schema = {"type": "object", "required": ["status"], "properties": {"status": STRING}}
_ERROR: Schema = {
    "type": "object",
    "required": ["code", "type", "message"],
    "properties": {"code": {"type": "integer"}, "type": STRING, "message": STRING},
}
UNKNOWN_CALLER = {"401": "The token is missing.", "403": "The token is invalid, or the client is not allowed."}
# Over TCP, a token authenticates the client, if one is configured.
_SECURITY = {"token": {"type": "http", "scheme": "bearer"}}


def document(*tables: Mapping[str, Mapping[str, Operation]]) -> dict[str, Any]:
    """Return an OpenAPI document of tables, path → method → operation; of an operation in several, the last one's."""
    paths: dict[str, dict[str, Operation]] = {}
    for table in tables:
        for path, methods in table.items():
            paths[path] = {**paths.get(path, {}), **methods}
    return {
        "openapi": "3.0.1",
        "info": {
            "title": "tsctl API",
            "version": "1.0.0",
            "description": "PyTorch models, served with dynamic batching.",
        },
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}, "securitySchemes": _SECURITY},
    }


def operation(
    name: str, parameters: list[dict[str, Any]], answers: Mapping[str, Any], failures: Mapping[str, str]
) -> Operation:
    """Return the description of an operation; `answers` and `failures` are keyed by status."""
    responses = {**answers, **{status: failure(text) for status, text in sorted(failures.items())}}
    return {"operationId": name, "parameters": parameters, "responses": responses}


def answer(text: str, schema: Schema | None = None, *kinds: str) -> dict[str, Any]:
    """Return the description of an answer, in JSON unless it has other `kinds`; without a schema any content."""
    content = {kind: {"schema": schema or {}} for kind in kinds or ("application/json",)}
    return {"description": text, "content": content}


def failure(text: str) -> dict[str, Any]:
    return answer(text, {"$ref": "#/components/schemas/Error"})


def body(text: str) -> dict[str, Any]:
    """Return the description of a body of arbitrary bytes."""
    return {"description": text, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}


def path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part.partition("}")[0] for part in path.split("{")[1:]]
    return [{"name": name, "in": "path", "required": True, "schema": STRING} for name in names]


def query_parameters(schemas: Mapping[str, Schema], required: str = "") -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "schema": schema, **({"required": True} if name == required else {})}
        for name, schema in schemas.items()
    ]


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def whole(least: int | None = None) -> Schema:
    return {"type": "integer", **({} if least is None else {"minimum": least})}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def members(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with `required` and `optional` members; others are allowed."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}
