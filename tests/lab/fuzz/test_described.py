"""The daemon answers what its descriptions allow, as they tell: here in memory, by `make fuzz` in its process."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.house import House
from tests.http.peer import Answer
from tests.lab.fuzz.described import Asked, conversations, differences, faults
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management

LIKELY = {
    "model_name": ("m",),
    "model_version": ("1.0", "1.0", "2.0", "all"),
    "url": ("m-1.0", "m-2.0", "other"),
    "batching": ("auto", "fixed"),
    "synchronous": ("true",),
    "handler": ("image_classifier",),
    "optimize": ("none",),
    "max_batch_delay": ("5", "-1"),
}
DESCRIPTIONS = {"inference": describe_api(), "management": describe_management(own=True)}
APART = ("/tsctl/upgrade", "/tsctl/config", "/tsctl/store")  # of the daemon's own process; the house has none
_PATHS = {name: {path: told for path, told in each["paths"].items() if path not in APART}
          for name, each in DESCRIPTIONS.items()}  # fmt: skip


async def _faults(description: dict[str, Any], asked: list[Asked]) -> list[str]:
    """Ask one house everything in turn; tell where it differs from the description."""
    with tempfile.TemporaryDirectory() as root:
        house = House(Path(root))
        await house.serve("m")
        house.put("m", "2.0", place="m-2.0")
        house.put("other")
        found = []
        for each in asked:
            answer = await house.ask(each.method, each.target, each.body, *each.headers)
            found += [f"{each.method} {each.target}: {fault}" for fault in faults(description, each, answer)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", DESCRIPTIONS)
@settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(choice=st.data())
def test_every_answer_is_one_that_the_description_tells_of(name: str, choice: st.DataObject) -> None:
    description = DESCRIPTIONS[name] | {"paths": _PATHS[name]}
    asked = choice.draw(conversations(description, LIKELY))

    assert asyncio.run(_faults(description, asked)) == []


PING = Asked("GET", "/ping", "/ping", (), b"")
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        pytest.param(Answer(204, {}, b""), "status 204 is not described: b''", id="of another status"),
        pytest.param(
            Answer(200, {"content-type": "a/b"}, b""), "content type `a/b` is not described", id="of another type"
        ),
        pytest.param(Answer(200, JSON, b"{}"), "$ lacks `status`", id="that lacks something"),
        pytest.param(
            Answer(200, JSON, b'{"status": 1}'), "$.status is 1, and should be of type string", id="of numbers"
        ),
    ],
)
def test_an_answer_that_is_not_described_is_noticed(answer: Answer, fault: str) -> None:
    assert faults(DESCRIPTIONS["inference"], PING, answer) == [fault]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        pytest.param([1, "a"], {"type": "array", "items": {"type": "integer"}}, id="a member of a list"),
        pytest.param("c", {"type": "string", "enum": ["a", "b"]}, id="a word that is none"),
        pytest.param(0, {"type": "integer", "minimum": 1}, id="too little"),
        pytest.param(True, {"type": "integer"}, id="truth for a number"),
        pytest.param({"code": 1}, {"$ref": "#/components/schemas/Error"}, id="half an error"),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_noticed(value: object, schema: dict[str, Any]) -> None:
    assert differences(value, schema, DESCRIPTIONS["inference"])


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_every_operation_has_a_name_of_its_own(name: str) -> None:
    operations = [told["operationId"] for path in DESCRIPTIONS[name]["paths"].values() for told in path.values()]

    assert len(operations) == len(set(operations)) > 15
