"""What the daemon's OpenAPI descriptions tell of an answer: of JSON Schema as much as they use."""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.http.peer import Answer
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management
from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.declarations import Operations

JSON = "application/json"

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


class Described:
    """The operations of both addresses.

    Args:
        own: those of the control socket, too.
        further: others beside.
    """

    def __init__(self, *, own: bool, further: Operations = MappingProxyType({})) -> None:
        self._operations: list[tuple[str, re.Pattern[str], Operation]] = []
        for description in (describe_api(), describe_management(own=own)):
            # A literal word of a path counts before a name that may stand there.
            for path, methods in sorted(
                (*description["paths"].items(), *further.items()), key=lambda each: each[0].count("{")
            ):
                pattern = re.compile("([^/]+)".join(map(re.escape, re.split(r"\{\w+\}", path))))
                self._operations += [(method.upper(), pattern, told) for method, told in methods.items()]
        self._schemas = description["components"]["schemas"]  # of both descriptions

    def faults(self, method: str, target: str, answer: Answer) -> list[str]:
        """Return how an answer differs from its description; empty if it is described, or its endpoint is not."""
        path = target.partition("?")[0]
        told = next((each for verb, name, each in self._operations if verb == method and name.fullmatch(path)), None)
        if told is None:
            return []
        if str(answer.status) not in told["responses"]:
            return [f"status {answer.status} is not described: {answer.body[:200]!r}"]
        contents = told["responses"][str(answer.status)]["content"]
        kind = answer.headers.get("content-type", "").partition(";")[0]
        handlers = "*/*" in told["responses"]["200"]["content"]  # their failures may be of any type
        if "*/*" in contents or (handlers and kind != JSON):
            return []
        if kind not in contents:
            return [f"content type `{kind}` is not described"]
        return list(self._differences(json.loads(answer.body), contents[kind]["schema"])) if kind == JSON else []

    def _differences(self, value: Any, schema: Mapping[str, Any], at: str = "$") -> Iterator[str]:
        """Yield how a JSON value differs from a schema."""
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        if value is None and schema.get("nullable"):
            return
        kind = schema.get("type", "")
        if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
            yield f"{at} is {value!r}, and should be of type {kind}"
            return
        yield from (f"{at} lacks `{name}`" for name in schema.get("required", ()) if name not in value)
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at} is {value!r}, and should be one of {schema['enum']}"
        if "minimum" in schema and value < schema["minimum"]:
            yield f"{at} is {value!r}, and should be at least {schema['minimum']}"
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield from self._differences(value[name], inner, f"{at}.{name}")
        for number, item in enumerate(value if "items" in schema else ()):
            yield from self._differences(item, schema["items"], f"{at}[{number}]")
