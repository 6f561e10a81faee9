"""The daemon answers what its descriptions allow, as they tell; `make fuzz` asks it for longer."""

from typing import Any

import pytest

from tests.http.peer import Answer
from tests.lab.fuzz.described import DESCRIPTIONS, Asked, differences, faults, hold


@pytest.mark.slow
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_every_answer_is_one_that_the_description_tells_of(name: str) -> None:
    hold(name, 1)


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
