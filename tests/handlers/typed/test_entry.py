"""A typed function gets decoded values, and its answers are encoded, whatever the body and whatever it returns."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from tests.handlers.typed.calls import ask, request, runtime_of, told, type_of
from tsctl.handlers import wire
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, PredictionException


@dataclass
class Person:
    name: str
    age: int


class Shape(TypedDict):
    sides: int


class Order(msgspec.Struct):
    item: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class Invalid(ValueError):
    def errors(self) -> list[dict[str, Any]]:
        return [{"loc": ("a", 0), "msg": "Field required"}, {"loc": (), "msg": "Not an object"}]


class Model:
    """As pydantic's models: a class that validates JSON itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def model_validate_json(cls, text: bytes) -> "Model":
        return cls.model_validate(json.loads(text))

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if not isinstance(value, dict):
            raise Invalid("1 validation error for Model\nand more")
        return cls(value)

    def model_dump(self, mode: str) -> Any:
        return {"mode": mode, **self.value}


def test_a_function_of_lists_is_called_once_for_the_batch() -> None:
    sizes = []

    def predict(texts: list[str]) -> list[dict[str, int]]:
        sizes.append(len(texts))
        return [{"length": len(each)} for each in texts]

    answers = ask(predict, b"a", "zwölf".encode(), b"")

    assert told(answers) == [(200, '{"length":1}'), (200, '{"length":5}'), (200, '{"length":0}')]
    assert type_of(answers[0]) == "application/json"
    assert sizes == [3]


def test_a_function_of_one_value_is_called_for_each_row() -> None:
    def predict(text: str) -> str:
        return text.upper()

    answers = ask(predict, b"a", b"b")

    assert told(answers) == [(200, "A"), (200, "B")]
    assert type_of(answers[0]) == "text/plain; charset=utf-8"


def test_a_row_that_raises_fails_alone_where_rows_are_calls_of_their_own() -> None:
    def predict(number: int) -> float:
        return 1 / number

    answers = ask(predict, b"1", b"0", b"4")

    assert told(answers) == [
        (200, "1.0"),
        (503, "Prediction failed: ZeroDivisionError: division by zero (Request r1)"),
        (200, "0.25"),
    ]


def test_an_author_chooses_the_status_of_a_row() -> None:
    def predict(text: str) -> str:
        if not text:
            raise PredictionException("nothing to read", 422)
        return text

    assert told(ask(predict, b"", b"x")) == [(422, "nothing to read"), (200, "x")]


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


def test_a_model_of_pydantics_form_validates_and_is_an_answer() -> None:
    def predict(model: Model) -> Model:
        return model

    answers = ask(predict, b'{"a":1}', b"[]", b"{")

    assert [each.status for each in answers] == [200, 400, 400]
    assert json.loads(answers[0].body) == {"mode": "json", "a": 1}
    assert answers[1].body == b"`model`: Field required - at `$.a[0]`; Not an object (Request r1)"


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


def two(text: str, number: int = 7) -> str:
    return f"{text} {number}"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(request(("text", "", b"a"), ("number", "", b"1")), (200, "a 1"), id="a form"),
        pytest.param(request(("body", "application/json", b'{"text":"a","number":1}')), (200, "a 1"), id="an object"),
        pytest.param(request(("body", "", b'{"text":"a"}')), (200, "a 7"), id="a default"),
        pytest.param(
            request(("number", "", b"1")),
            (400, "`text`: the request lacks this part, it has `number`; send a part or a JSON member of that name"),
            id="a part that is missing",
        ),
        pytest.param(
            request(("body", "", b"[1]")),
            (200, "[1] 7"),
            id="any other body is the one that is required",
        ),
        pytest.param(
            request(("body", "", b'{"text":1}')),
            (400, "`text`: expected a text, got int"),
            id="a member of another type",
        ),
        pytest.param(
            request(("body", "", b'{"text":"a","number":"1"}')),
            (400, "`number`: Expected `int`, got `str`"),
            id="a number that is a text",
        ),
    ],
)
def test_several_parameters_are_parts_of_a_form_or_members_of_an_object(
    row: wire.Row, expected: tuple[int, str]
) -> None:
    [answer] = ask(two, row)

    status, text = expected
    assert told([answer]) == [(status, text if status == 200 else f"{text} (Request r0)")]


@pytest.mark.parametrize("name", ["text", "body", "data"])
def test_one_parameter_is_the_body_or_the_part_of_its_name(name: str) -> None:
    def predict(text: str) -> str:
        return text

    assert told(ask(predict, request((name, "", b"a")))) == [(200, "a")]


@pytest.mark.parametrize("body", [b'"a"', b'{"text":"a"}'], ids=["a JSON text", "an object"])
def test_a_text_may_come_as_json(body: bytes) -> None:
    def predict(text: str) -> str:
        return text

    assert told(ask(predict, body, content_type="application/json")) == [(200, "a")]


def test_a_part_of_another_name_is_not_taken_for_the_body() -> None:
    def predict(text: str) -> str:
        return text

    [answer] = ask(predict, request(("file", "", b"a")))

    assert answer.status == 400
    assert answer.body.startswith(b"`text`: the request lacks this part, it has `file`; send the body as it is")


def test_rows_that_lack_a_part_take_its_default_and_the_others_do_not() -> None:
    def predict(texts: list[str], numbers: list[int] | int = 0) -> list[str]:
        return [f"{text} {numbers}" for text in texts]

    def predict_lists(texts: list[str], numbers: list[int] = [7]) -> list[str]:  # noqa: B006
        return [f"{text} {numbers}" for text in texts]

    rows = [request(("texts", "", b"a"), ("numbers", "", b"1")), request(("texts", "", b"b"))]

    assert told(ask(predict_lists, *rows)) == [(200, "a [1]"), (200, "b [7]")]
    assert told(ask(predict, request(("texts", "", b"a")))) == [(200, "a 0")]


def test_the_context_is_the_rows_own() -> None:
    def predict(text: str, context: Context) -> str:
        context.set_response_status(201, "Made", idx=0)
        return f"{text} {context.get_request_id(0)}"

    answers = ask(predict, b"a", b"b")

    assert told(answers) == [(201, "a r0"), (201, "b r1")]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "`predict` returned None (is a `return` missing?); expected a list of 2, one answer for each row"),
        ("ab", "`predict` returned str; expected a list of 2, one answer for each row of the batch"),
        (["a"], "`predict` returned 1 answers; expected a list of 2, one answer for each row of the batch"),
        ({"a": 1, "b": 2}, "`predict` returned dict; expected a list of 2"),
    ],
)
def test_a_result_that_is_not_one_answer_for_each_row_is_named(result: Any, reason: str) -> None:
    def predict(texts: list[str]) -> Any:
        return result

    answers = ask(predict, b"a", b"b")

    assert [each.status for each in answers] == [503, 503]
    assert answers[0].body.decode().startswith(reason)


def test_an_answer_of_another_type_than_promised_fails_its_row() -> None:
    def predict(texts: list[str]) -> list[str]:
        return ["a", None]  # type: ignore[list-item]

    answers = ask(predict, b"a", b"b")

    expected = "`predict` returned None (is a `return` missing?) for a row; its return annotation says str"
    assert told(answers) == [(200, "a"), (503, f"{expected} (Request r1)")]


def test_setup_runs_once_and_may_be_a_coroutine() -> None:
    class Greeter:
        async def setup(self) -> None:
            self.greeting = "hello"

        def predict(self, text: str) -> str:
            return f"{self.greeting} {text}"

    greeter = Greeter()
    runtime = runtime_of(greeter.predict, greeter)

    assert told(runtime.run([request(("body", "", b"you"))])) == [(200, "hello you")]
    assert runtime.own_handle


def test_a_row_that_asks_for_a_description_gets_the_declaration_and_an_explanation_is_refused() -> None:
    rows = [wire.Row("r0", [("describe", "True")], []), wire.Row("r1", [("explain", "True")], [("body", "", b"a")])]

    answers = ask(lambda_free, *rows)

    assert json.loads(answers[0].body) == {
        "inputs": [{"name": "texts", "kind": "text", "type": "list[str]"}],
        "output": "list[str]",
    }
    assert answers[1].status == 501


def lambda_free(texts: list[str]) -> list[str]:
    return texts


def test_the_batch_size_is_an_attribute_of_the_class_or_function() -> None:
    class Sized:
        batch_size = 16

        def predict(self, texts: list[str]) -> list[str]:
            return texts

    def predict(texts: list[str]) -> list[str]:
        return texts

    sized = Sized()
    declared = runtime_of(sized.predict, sized).declared

    assert declared == wire.Declared([wire.Input("texts", "text", "list[str]")], True, 16, False, "list[str]")
    assert runtime_of(predict).declared.batch_size == 0  # type: ignore[union-attr]
    predict.batch_size = "many"  # type: ignore[attr-defined]
    with pytest.raises(HandlerError, match="`batch_size` of the handler is 'many'; expected a whole number from 1"):
        runtime_of(predict)


def test_a_batch_of_single_numbers_is_noted_and_a_list_for_one_is_told_why() -> None:
    def predict(x: list[float]) -> list[float]:
        return x

    runtime = runtime_of(predict)
    [answer] = runtime.run([request(("body", "application/json", b"[1.0, 2.0]"))])

    sentence = (
        "`x: list[float]` is a batch, with one float for each request; for a list in each request write"
        " `x: list[list[float]]`"
    )
    assert runtime.notes == [sentence]
    assert answer.body.decode() == f"`x`: Expected `float`, got `array`. {sentence} (Request r0)"


def test_of_lists_texts_and_single_numbers_nothing_is_noted() -> None:
    def texts(x: list[str]) -> list[str]:
        return x

    def numbers(x: list[list[float]]) -> list[float]:
        return [sum(each) for each in x]

    def single(x: float) -> float:
        return x

    assert [runtime_of(each).notes for each in (texts, numbers, single)] == [[], [], []]


def test_a_batch_that_is_to_return_one_value_is_noted() -> None:
    def predict(x: list[str]) -> float:
        return len(x)

    assert runtime_of(predict).notes == [
        "`predict` takes a batch and is to return float; the answer to a batch is a list, with one item for each"
        " request: `-> list[float]`"
    ]
