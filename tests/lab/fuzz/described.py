"""A daemon in memory is asked what its descriptions allow, as hypothesis draws it, and answers as they tell.

    python -m tests.lab.fuzz.described SECONDS

Of JSON Schema, as much as our descriptions use.
"""

import asyncio
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.api.house import House
from tests.http.peer import Answer
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management

DESCRIPTIONS = {"inference": describe_api(), "management": describe_management(own=True)}
_APART = ("/tsctl/upgrade", "/tsctl/config", "/tsctl/store")  # of the daemon's own process; the house has none
# Values for the parameters of these names, which come more often than any others.
_LIKELY = {
    "model_name": ("m",),
    "model_version": ("1.0", "1.0", "2.0", "all"),
    "url": ("m-1.0", "m-2.0", "other"),
    "batching": ("auto", "fixed"),
    "synchronous": ("true",),
    "handler": ("image_classifier",),
    "optimize": ("none",),
    "max_batch_delay": ("5", "-1"),
}
_EACH = 10  # conversations that are drawn from a seed
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that a description allows."""

    method: str
    path: str  # in the description
    target: str
    headers: tuple[str, ...]
    body: bytes


@st.composite
def _conversations(draw: st.DrawFn, description: Mapping[str, Any]) -> list[Asked]:
    """Draw a request of every operation, in any order; what deletes comes last."""
    operations = [(path, method) for path, methods in description["paths"].items() for method in methods]
    order = random.Random(draw(st.integers(0, 2**32)))  # hypothesis's own permutations hardly change the order
    order.shuffle(operations)
    operations.sort(key=lambda each: each[1] == "delete")  # what is gone answers nothing
    return [draw(_requests(description, path, method)) for path, method in operations]


@st.composite
def _requests(draw: st.DrawFn, description: Mapping[str, Any], path: str, method: str) -> Asked:
    operation = description["paths"][path][method]
    target, query, headers = path, dict[str, str](), list[str]()
    for parameter in operation["parameters"]:
        name, schema = parameter["name"], parameter["schema"]
        value = draw(_values(schema, _LIKELY.get(name, ())))
        if parameter["in"] == "path":
            target = target.replace(f"{{{name}}}", quote(value or "-", safe=""))
        elif not (parameter.get("required") or draw(st.booleans())):
            continue
        elif parameter["in"] == "query":
            query[name] = value
        else:
            headers.append(f"{name}: {quote(value, safe='')}")
    body = draw(st.binary(max_size=20)) if "requestBody" in operation else b""
    as_json: bool = draw(st.booleans())
    if query and as_json and method != "get" and "requestBody" not in operation:
        headers.append("Content-Type: application/json")
        body = json.dumps(query).encode()
    elif query:
        target += "?" + urlencode(query)
    return Asked(method.upper(), path, target, tuple(headers), body)


def _values(schema: Mapping[str, Any], likely: tuple[str, ...]) -> st.SearchStrategy[str]:
    """As text: what the schema allows, and seldom what it does not."""
    usual: st.SearchStrategy[str]
    if "enum" in schema:
        usual = st.sampled_from(schema["enum"])
    elif schema["type"] == "boolean":
        usual = st.sampled_from(["true", "false"])
    elif schema["type"] == "integer":
        usual = st.integers(schema.get("minimum", -1), 3).map(str)
    elif schema["type"] == "number":
        usual = st.floats(0, 1000).map(str)
    else:
        usual = _WORDS
    if likely:
        usual = st.sampled_from([*likely] * 8)
    rare = _WORDS | st.integers().map(str)
    return st.integers(0, 7).flatmap(lambda chance: rare if chance == 7 else usual)


def faults(description: Mapping[str, Any], asked: Asked, answer: Answer) -> list[str]:
    """Return how an answer differs from the description; empty if the answer is described."""
    responses = description["paths"][asked.path][asked.method.lower()]["responses"]
    if str(answer.status) not in responses:
        return [f"status {answer.status} is not described: {answer.body[:200]!r}"]
    contents = responses[str(answer.status)]["content"]
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if "*/*" in contents:
        return []
    if kind not in contents:
        return [f"content type `{kind}` is not described"]
    schema = contents[kind]["schema"]
    return list(differences(json.loads(answer.body), schema, description)) if kind == "application/json" else []


def differences(value: Any, schema: Mapping[str, Any], description: Mapping[str, Any], at: str = "$") -> list[str]:
    """Return how a JSON value differs from a schema."""
    if "$ref" in schema:
        return differences(
            value, description["components"]["schemas"][schema["$ref"].rpartition("/")[2]], description, at
        )
    if value is None and schema.get("nullable"):
        return []
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{at} is {value!r}, and should be of type {kind}"]
    found = [f"{at} lacks `{name}`" for name in schema.get("required", ()) if name not in value]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at} is {value!r}, and should be one of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{at} is {value!r}, and should be at least {schema['minimum']}")
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            found += differences(value[name], inner, description, f"{at}.{name}")
    if "items" in schema:
        for number, item in enumerate(value):
            found += differences(item, schema["items"], description, f"{at}[{number}]")
    return found


async def _ask_all(description: Mapping[str, Any], asked: list[Asked], folder: Path) -> list[str]:
    """Ask one house everything in turn; return where it differs from the description."""
    house = House(folder)
    await house.serve("m")
    house.put("m", "2.0", place="m-2.0")
    house.put("other")
    found = []
    for each in asked:
        answer = await house.ask(each.method, each.target, each.body, *each.headers)
        found += [f"{each.method} {each.target}: {fault}" for fault in faults(description, each, answer)]
    return found


def hold(name: str, number: int) -> None:
    """Hold some conversations, drawn from a number, with a daemon that has this description."""
    told = DESCRIPTIONS[name]
    description = told | {"paths": {path: each for path, each in told["paths"].items() if path not in _APART}}

    @seed(number)
    @settings(max_examples=_EACH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(asked=_conversations(description))
    def converse(asked: list[Asked]) -> None:
        with tempfile.TemporaryDirectory() as folder:  # until the loop's threads have ended, which write there
            assert asyncio.run(_ask_all(description, asked, Path(folder))) == []

    converse()


def main(seconds: float) -> None:
    logging.disable()  # what the daemon refuses it logs
    first = number = random.SystemRandom().randrange(1_000_000)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for name in DESCRIPTIONS:
            hold(name, number)
        number += 1
    print(f"{len(DESCRIPTIONS) * _EACH * (number - first):,} conversations from seed {first}, every answer described")


if __name__ == "__main__":
    main(float(sys.argv[1]))
