"""Which body, form and query fills which parameter: the same for one parameter and for several."""

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image

from tests.handlers.typed.calls import ask, request, told
from tsctl.handlers import wire
from tsctl.handlers.requests.rows import to_npy

JSON = "application/json"


class Order(msgspec.Struct):
    item: str


class Options(msgspec.Struct):
    top: int = 1


def png(width: int, height: int = 2) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (width, height), 255).save(buffer, "PNG")
    return buffer.getvalue()


def in_base64(width: int) -> str:
    return base64.encodebytes(png(width)).decode()  # with line ends, as some tools write it


def body(value: bytes | str | object, kind: str = JSON) -> wire.Row:
    return request(("body", kind, value if isinstance(value, bytes) else msgspec.json.encode(value)))


def _image(image: Image.Image) -> str:
    return str(image.size)


def _image_top(image: Image.Image, top: int = 1) -> str:
    return str(image.size)


def _text(text: str) -> str:
    return text


def _text_top(text: str, top: int = 1) -> str:
    return text


def _number(number: float) -> str:
    return str(number)


def _number_top(number: float, top: int = 1) -> str:
    return str(number)


def _order(order: Order) -> str:
    return order.item


def _order_top(order: Order, top: int = 1) -> str:
    return order.item


def _options(options: Options) -> str:
    return str(options.top)


def _options_scale(options: Options, scale: float = 1.0) -> str:
    return str(options.top)


def _body(body: str) -> str:
    return body


def _body_top(body: str, top: int = 1) -> str:
    return body


IMAGES, TEXTS, NUMBERS = (_image, _image_top), (_text, _text_top), (_number, _number_top)
OPTIONS = (_options, _options_scale)
ORDERS, BODIES = (_order, _order_top), (_body, _body_top)


@pytest.mark.parametrize(
    ("functions", "row", "answer"),
    [
        pytest.param(TEXTS, body(b"hello", "text/plain"), "hello", id="a text"),
        pytest.param(TEXTS, body(b"hello", ""), "hello", id="a text of no type"),
        pytest.param(TEXTS, body({"text": "hello"}), "hello", id="a member with the text"),
        pytest.param(TEXTS, body({"text": "hello"}, ""), "hello", id="the same without a type"),
        pytest.param(TEXTS, body("hello"), "hello", id="a JSON text"),
        pytest.param(TEXTS, request(("text", "", b"hello")), "hello", id="a part with the text"),
        pytest.param(TEXTS, request(("data", "", b"hello")), "hello", id="a part called data"),
        pytest.param(BODIES, body(b"hello", "text/plain"), "hello", id="a parameter called body"),
        pytest.param(BODIES, body({"body": "hello"}), "hello", id="as a member"),
        pytest.param(IMAGES, body(png(3), "image/png"), "(3, 2)", id="a file"),
        pytest.param(IMAGES, body(png(3), "text/plain"), "(3, 2)", id="a file of another type"),
        pytest.param(IMAGES, body({"image": in_base64(3)}), "(3, 2)", id="a member in base64"),
        pytest.param(IMAGES, body(in_base64(3)), "(3, 2)", id="a JSON text in base64"),
        pytest.param(IMAGES, body(in_base64(3).encode(), "text/plain"), "(3, 2)", id="a text in base64"),
        pytest.param(IMAGES, request(("image", "image/png", png(3))), "(3, 2)", id="a part with the file"),
        pytest.param(NUMBERS, body(b"1.5"), "1.5", id="a number"),
        pytest.param(NUMBERS, body(b' \n{"number": 1.5}', ""), "1.5", id="a member with the number"),
        pytest.param(ORDERS, body({"item": "tea"}), "tea", id="an object"),
        pytest.param(OPTIONS, body({"top": 5}), "5", id="an object whose fields are all optional"),
        pytest.param(OPTIONS, body({"options": {"top": 5}}), "5", id="a member with such an object"),
        pytest.param(ORDERS, body({"order": {"item": "tea"}}), "tea", id="a member with the object"),
    ],
)
def test_a_body_that_one_parameter_takes_several_take_too(
    functions: tuple[Callable[..., Any], ...], row: wire.Row, answer: str
) -> None:
    assert [told(ask(each, row)) for each in functions] == [[(200, answer)]] * len(functions)


def test_a_parameter_that_takes_objects_gets_the_object_itself_where_it_is_the_only_one() -> None:
    def predict(data: dict[str, int]) -> str:
        return str(data)

    assert told(ask(predict, body({"data": 1}))) == [(200, "{'data': 1}")]


def test_a_text_in_plain_text_stays_as_it_is() -> None:
    assert told(ask(_text, body({"text": "hello"}, "text/plain"))) == [(200, '{"text":"hello"}')]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param(
            body({"txt": "hello"}), "`text`: the request lacks this part, it has `txt`; send a part or a JSON member",
            id="an object without the member",
        ),
        pytest.param(
            request(("file", "", b"hello")), "`text`: the request lacks this part, it has `file`", id="another part"
        ),
        pytest.param(body({"text": 1}), "`text`: expected a text, got int", id="a member of another type"),
    ],
)  # fmt: skip
def test_a_body_for_no_parameter_is_refused_with_what_it_has(row: wire.Row, reason: str) -> None:
    [answer] = ask(_text_top, row)

    assert (answer.status, answer.body.decode()[: len(reason)]) == (400, reason)


def test_an_object_that_lacks_a_member_is_refused_with_what_it_has() -> None:
    def predict(text: str, question: str, top: int = 1) -> str:
        return text + question

    [answer] = ask(predict, body({"text": "hello", "top": 2}))

    assert answer.body.startswith(b"`question`: the request lacks this part, it has `text`, `top`; send a part or")


def _settings(text: str = "a", top: int = 1) -> str:
    return f"{text}{top}"


def _batch(texts: list[str], top: int = 1) -> list[str]:
    return texts


TEXT_TOP = "is no part that the handler takes; those are `text`, `top`"


@pytest.mark.parametrize(
    ("function", "row", "reason"),
    [
        pytest.param(_text_top, body({"text": "a", "topp": 5}), f"`topp` {TEXT_TOP}; did you mean `top`?", id="member"),
        pytest.param(_text_top, body({"text": "a", "n": 5}), f"`n` {TEXT_TOP}", id="a member like none"),
        pytest.param(
            _text_top, request(("text", "", b"a"), ("Top", "", b"5")), f"`Top` {TEXT_TOP}; did you mean `top`?",
            id="part",
        ),
        pytest.param(
            _text_top, request(("body", "", b"a"), ("topp", "", b"5")), f"`topp` {TEXT_TOP}; did you mean `top`?",
            id="a part beside a whole body",
        ),
        pytest.param(
            _text_top, request(("data", "", b"a"), ("body", "", b"b")), f"`body` {TEXT_TOP}", id="two whole bodies"
        ),
        pytest.param(
            _text, body({"text": "a", "top": 5}), "`top` is no part that the handler takes; those are `text`",
            id="beside the only one",
        ),
        pytest.param(_settings, request(("topp", "", b"5")), f"`topp` {TEXT_TOP}; did you mean `top`?", id="no other"),
        pytest.param(_settings, body({"text": "a", "topp": 5}), f"`topp` {TEXT_TOP}; did you mean `top`?", id="all"),
        pytest.param(
            _batch, body({"texts": "a", "top": 5}), "`top` is no part that the handler takes; those are `texts`",
            id="a setting of a function of lists",
        ),
        pytest.param(
            _order, body({"order": {"item": "tea"}, "price": 1}),
            "`order`: `price` is no part that the handler takes; those are `order`", id="beside an object's own member",
        ),
        pytest.param(
            _options, body({"options": {"top": 5}, "more": 1}),
            "`options`: `more` is no part that the handler takes; those are `options`", id="of which all is optional",
        ),
    ],
)  # fmt: skip
def test_what_no_parameter_takes_is_refused_with_the_near_name(
    function: Callable[..., Any], row: wire.Row, reason: str
) -> None:
    [answer] = ask(function, row)

    assert (answer.status, answer.body.decode()) == (400, f"{reason} (Request r0)")


def test_a_record_leaves_out_members_as_its_type_does() -> None:
    assert told(ask(_order, body({"item": "tea", "more": 1}))) == [(200, "tea")]


def test_an_object_without_members_leaves_all_out() -> None:
    assert told(ask(_settings, body({}))) == [(200, "a1")]


def test_a_record_with_a_field_of_the_parameters_name_is_refused_for_its_own_reason() -> None:
    class Both(msgspec.Struct):
        order: int
        item: str

    def predict(order: Both) -> str:
        return order.item

    [answer] = ask(predict, body({"order": "x", "item": "tea"}))

    assert answer.body.startswith(b"`order`: Expected `int`, got `str`")


def test_a_body_that_may_be_for_either_of_two_is_refused_with_both_names() -> None:
    def predict(text: str, question: str) -> str:
        return text + question

    [answer] = ask(predict, body(b"hello", "text/plain"))

    assert answer.status == 400
    assert answer.body.startswith(b"The request should be a JSON object or a form with `text`, `question`, and is not")


def _with_top(image: Image.Image, top: int = 1) -> str:
    return f"{image.width} {top}"


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        pytest.param(request(("body", "", png(3)), ("top", "", b"5")), "3 5", id="a file"),
        pytest.param(request(("data", "", png(3)), ("top", "", b"5")), "3 5", id="a part called data"),
        pytest.param(
            request(("body", JSON, msgspec.json.encode({"image": in_base64(3)})), ("top", "", b"5")), "3 5",
            id="an object",
        ),
        pytest.param(request(("image", "", png(3)), ("top", "", b"5"), ("body", "", b"")), "3 5", id="no body"),
    ],
)  # fmt: skip
def test_a_body_and_what_comes_beside_it_fill_the_parameters(row: wire.Row, answer: str) -> None:
    assert told(ask(_with_top, row)) == [(200, answer)]


@pytest.mark.parametrize(
    ("function", "row", "reason"),
    [
        pytest.param(
            _text_top, request(("body", JSON, b'{"text": "a", "top": 4}'), ("top", "", b"5")),
            "`top`: the request has '5' as a part or a parameter of its query, and 4 as a member of the body;"
            " send one of the two",
            id="a member",
        ),
        pytest.param(
            _text, request(("body", "", b"hello"), ("text", "", b"hi")),
            "`text`: the request has 'hi' as a part or a parameter of its query, and a body of 5 bytes beside that;"
            " send one of the two",
            id="a body for no other parameter",
        ),
    ],
)  # fmt: skip
def test_of_two_values_for_a_parameter_none_is_lost(function: Callable[..., Any], row: wire.Row, reason: str) -> None:
    assert told(ask(function, row)) == [(400, f"{reason} (Request r0)")]


def test_two_parts_of_one_name_are_refused() -> None:
    answers = ask(
        _image_top,
        *(request(("image", "", png(3)), ("image", "", png(width)), number=n) for n, width in enumerate((3, 4))),
    )

    assert [each.status for each in answers] == [400, 400]
    assert answers[0].body.startswith(b"`image`: the request has 2 parts of this name, and the parameter takes one")


def test_a_list_for_each_row_takes_all_parts_of_its_name() -> None:
    def predict(images: list[list[Image.Image]]) -> list[list[int]]:
        return [[each.width for each in row] for row in images]

    rows = [
        request(("images", "image/png", png(3)), ("images", "image/png", png(4))),
        request(("images", "image/png", png(5)), number=1),
        body([in_base64(6), in_base64(7)]),
        body({"images": [in_base64(8)]}),
        request(("body", "", png(9)), number=4),
    ]

    assert [each.body for each in ask(predict, *rows)] == [b"[3,4]", b"[5]", b"[6,7]", b"[8]", b"[9]"]


def test_a_list_of_values_takes_all_parts_of_its_name_or_a_json_list() -> None:
    def predict(words: list[list[str]], numbers: list[list[int]] = []) -> list[str]:  # noqa: B006
        return [f"{each} {numbers}" for each in words]

    rows = [
        request(("words", "", b"a"), ("words", "", b'"b"'), ("numbers", "", b"1"), ("numbers", "", b"2")),
        request(("words", "", b'["a"]'), ("numbers", "", b"[1, 2]"), number=1),
    ]

    assert [told(ask(predict, each)) for each in rows] == [
        [(200, "['a', '\"b\"'] [[1, 2]]")],
        [(200, "['a'] [[1, 2]]")],
    ]


@pytest.mark.parametrize("kind", [torch.Tensor, np.ndarray])
def test_a_list_of_arrays_for_each_row_takes_all_parts_of_its_name_or_a_json_list_of_lists(kind: Any) -> None:
    def predict(boxes):  # type: ignore[no-untyped-def]  # the hint is the test's parameter
        return [[list(each.shape) for each in row] for row in boxes]

    predict.__annotations__ = {"boxes": list[list[kind]]}
    rows = [
        request(("boxes", "", b"[1, 2]"), ("boxes", "", to_npy(np.zeros((3, 4))))),
        request(("boxes", "", b"[1, 2]"), number=1),
        body([[1, 2, 3], [[4], [5]]]),
        body({"boxes": [[1], [2]]}),
        body([]),
    ]

    assert [json.loads(each.body) for each in ask(predict, *rows)] == [
        [[2], [3, 4]], [[2]], [[3], [2, 1]], [[1], [1]], [],
    ]  # fmt: skip


def test_of_several_images_the_unreadable_one_is_named() -> None:
    def predict(images: list[list[Image.Image]]) -> list[int]:
        return [len(row) for row in images]

    [answer] = ask(predict, request(("images", "", png(3)), ("images", "", b"nothing")))

    assert (answer.status, answer.body.decode()[:46]) == (400, "`images`: item 2: The request's 7 bytes are no")


def test_an_optional_list_of_images_is_one_for_each_row() -> None:
    def predict(note: str, images: list[Image.Image] | None = None) -> str:
        return f"{note} {[each.width for each in images or []]}"

    row = request(("note", "", b"a"), ("images", "", png(3)), ("images", "", png(4)))

    assert told(ask(predict, row, request(("note", "", b"b"), number=1))) == [(200, "a [3, 4]"), (200, "b []")]
