"""A body is decoded by the hint of its parameter; calls and answers are in `conversations/typed_calls.txt`."""

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from tests.handlers.typed.calls import ask, told


@dataclass
class Person:
    name: str
    age: int


class Shape(TypedDict):
    sides: int


class Order(msgspec.Struct):
    item: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(int, b"3", 3, id="int"),
        pytest.param(float, b"3", 3.0, id="float"),
        pytest.param(bool, b"true", True, id="bool"),
        pytest.param(Any, b'{"a":[1]}', {"a": [1]}, id="Any"),
        pytest.param(dict, b'{"a":[1]}', {"a": [1]}, id="dict"),
        pytest.param(dict[str, int], b'{"a":1}', {"a": 1}, id="dict of numbers"),
        pytest.param(Person, b'{"name":"a","age":1}', Person("a", 1), id="dataclass"),
        pytest.param(Shape, b'{"sides":3}', {"sides": 3}, id="TypedDict"),
        pytest.param(Order, b'{"item":"a"}', Order("a"), id="Struct"),
        pytest.param(Order | None, b"null", None, id="or None"),
        pytest.param(bytes, b"\x00\xff", b"\x00\xff", id="bytes"),
        pytest.param(bytearray, b"\x00", bytearray(b"\x00"), id="bytearray"),
        pytest.param(str, b"x", "x", id="str"),
        pytest.param(Annotated[str, msgspec.Meta(max_length=2)], b"xy", "xy", id="a text with a constraint"),
    ],
)
@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain; charset=utf-8", "application/x-any"])
def test_a_body_is_read_by_the_hint_whatever_its_content_type(
    kind: Any, body: bytes, expected: Any, content_type: str
) -> None:
    seen = []

    def predict(value):  # type: ignore[no-untyped-def]
        seen.append(value)
        return "ok"

    predict.__annotations__["value"] = kind
    answers = ask(predict, body, content_type=content_type)

    assert told(answers) == [(200, "ok")]
    assert seen == [expected]
    assert type(seen[0]) is type(expected)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        pytest.param(str, b"a\xff", "not a text in UTF-8: byte 1 is 0xff", id="a text that is not UTF-8"),
        pytest.param(int, b'"x"', "Expected `int`, got `str`", id="another JSON type"),
        pytest.param(Order, b'{"item":"a","count":0}', "Expected `int` >= 1 - at `$.count`", id="a field's constraint"),
        pytest.param(Person, b'{"name":"a"}', "Object missing required field `age`", id="a field that is missing"),
        pytest.param(dict, b"{", "not JSON: Input data was truncated", id="half a document"),
        pytest.param(dict, b"", "not JSON: Input data was truncated", id="nothing"),
        pytest.param(Any, b"[" * 100_000, "not JSON: ", id="JSON of great depth"),
        pytest.param(dict, b"\xff", "not JSON: ", id="no text at all"),
        pytest.param(
            Annotated[str, msgspec.Meta(max_length=2)], b"xyz", "Expected `str` of length <= 2", id="a text too long"
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_told_why_and_the_others_go_on(kind: Any, body: bytes, reason: str) -> None:
    good = b'{"name":"a","age":1,"item":"b"}' if kind not in (str, int) else b"1"

    def predict(values):  # type: ignore[no-untyped-def]
        return ["ok"] * len(values)

    predict.__annotations__["values"] = list[kind]
    bodies = [good[:2] if kind not in (dict, Any, Order, Person) else good, body]
    answers = ask(predict, *bodies)

    assert told(answers[:1]) == [(200, "ok")]
    assert answers[1].status == 400
    assert answers[1].error == "BadRequestException"
    assert answers[1].body.decode().startswith(f"`values`: {reason}")
