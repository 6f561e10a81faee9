"""The HTTP API, from the OpenAPI documents that the daemon answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from docs.generate.markdown import code, table
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management


def http() -> str:
    """Write each route with its parameters and answers."""
    tcp = describe_management()["paths"]
    own = {path: methods for path, methods in describe_management(own=True)["paths"].items() if path not in tcp}
    return "\n".join([
        "# HTTP API\n",
        "A running daemon answers the same as OpenAPI 3 documents: `OPTIONS /` of the inference address, `OPTIONS /models`"
        " of the management API; on the control socket with the routes that are only there. `OPTIONS /predictions/MODEL`"
        " describes one model.\n",
        'Errors are `{"code": 404, "type": "ModelNotFoundException", "message": "…"}`: see [Errors](errors.md).\n',
        "## Inference address\n",
        *_routes(describe_api()["paths"]),
        "## Management API\n",
        "On the control socket, and on `--management-address` where that is given.\n",
        *_routes(tcp),
        "## Control socket only\n",
        *_routes(own),
    ])  # fmt: skip


def _routes(paths: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a section for each operation; routes that take and answer the same share one."""
    sections: dict[str, list[str]] = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            sections.setdefault(_operation(operation), []).append(f"`{method.upper()} {path}`")
    for text, routes in sections.items():
        yield "### " + routes[0] + "\n"
        if routes[1:]:
            yield "The same: " + ", ".join(routes[1:]) + ".\n"
        yield text


def _operation(operation: Mapping[str, Any]) -> str:
    parameters = [_parameter(each) for each in operation["parameters"] if each["in"] != "path"]
    answers = [(code(status), each["description"]) for status, each in operation["responses"].items()]
    taken = table(("parameter", "", ""), parameters) + "\n" if parameters else ""
    return taken + table(("status", ""), answers)


def _parameter(described: Mapping[str, Any]) -> tuple[str, str, str]:
    schema = described["schema"]
    kind = " or ".join(map(code, schema["enum"])) if "enum" in schema else schema.get("type", "")
    least = f", at least {schema['minimum']}" if "minimum" in schema else ""
    place = "header" if described["in"] == "header" else "query"
    needed = ", required" if described.get("required") else ""
    return code(described["name"]), f"{place}, {kind}{least}{needed}", described.get("description", "")
