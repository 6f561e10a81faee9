"""A request as seen by a handler, and the response for its result."""

import io
import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.requests.rows import decode_rows, encode_item, failure, headers_of
from tsctl.handlers.sdk.context import RequestProcessor
from tsctl.handlers.sdk.errors import NotSerialisable

JSON = "application/json"


def decode_row(row: wire.Row) -> dict[str, Any]:
    (decoded,) = decode_rows([row])
    return decoded


def answer_to(item: Any) -> wire.Answer:
    return encode_item(item, RequestProcessor({}))


@pytest.mark.parametrize(
    ("content_type", "sent", "seen"),
    [
        pytest.param("", b"\x00\xff", bytearray(b"\x00\xff"), id="no type is bytes"),
        pytest.param("", b"", bytearray(), id="an empty body is empty bytes"),
        pytest.param("image/png", b"\x89PNG", bytearray(b"\x89PNG"), id="another type is bytes"),
        pytest.param(JSON, b'{"a": [1, null]}', {"a": [1, None]}, id="JSON is parsed"),
        pytest.param(f"{JSON}; charset=utf-8", b"[1]", [1], id="the charset is stripped"),
        pytest.param(JSON, b"3", 3, id="a JSON number"),
        pytest.param(JSON, b'"\xc3\xa9"', "é", id="a JSON string"),
        pytest.param(JSON, b"{broken", bytearray(b"{broken"), id="broken JSON is bytes"),
        pytest.param(JSON, b"", bytearray(), id="empty JSON is bytes"),
        pytest.param(JSON, b'"\xff"', bytearray(b'"\xff"'), id="JSON that is no UTF-8 is bytes"),
        pytest.param(JSON, b"[" * 100_000, bytearray(b"[" * 100_000), id="JSON that is nested without end is bytes"),
        pytest.param(JSON, b"9" * 5000, bytearray(b"9" * 5000), id="a JSON number without end is bytes"),
        pytest.param("Application/JSON", b"[1]", bytearray(b"[1]"), id="the type is compared as it was sent"),
        pytest.param("application/json-patch", b"[1]", bytearray(b"[1]"), id="and as a whole"),
        pytest.param("text/plain", b"caf\xc3\xa9", "café", id="text is UTF-8"),
        pytest.param("text/html;charset=x", b"<p>", "<p>", id="any text"),
        pytest.param("textual", b"a", "a", id="anything that starts with text"),
        pytest.param("TEXT/plain", b"a", bytearray(b"a"), id="in lower case"),
        pytest.param("text/plain", b"", "", id="empty text is an empty string"),
        pytest.param("text/plain", b"\xff", bytearray(b"\xff"), id="text that is no UTF-8 is bytes"),
    ],
)
def test_a_body_is_decoded_by_its_content_type(content_type: str, sent: bytes, seen: object) -> None:
    value = decode_row(row(sent, content_type))["body"]

    assert value == seen
    assert type(value) is type(seen)


def test_a_view_into_a_frame_is_decoded_as_bytes_are() -> None:
    view: Any = memoryview(b"[1]")

    assert decode_row(row(view, JSON)) == {"body": [1]}
    assert decode_row(row(view, "text/plain")) == {"body": "[1]"}
    assert decode_row(row(view)) == {"body": bytearray(b"[1]")}


def test_every_parameter_has_its_own_type() -> None:
    form = wire.Row("r", [], [("data", "", b"x"), ("top", JSON, b"3"), ("data", "text/plain", b"last")])

    assert decode_row(form) == {"data": "last", "top": 3}


@pytest.mark.parametrize("switch", ["false", "True", ""])
def test_decoding_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    monkeypatch.setenv("TS_DECODE_INPUT_REQUEST", switch)

    assert decode_row(row(b"[1]", JSON)) == {"body": bytearray(b"[1]")}


def test_what_cannot_be_decoded_is_said_in_the_models_log(capsys: pytest.CaptureFixture[str]) -> None:
    decode_row(row(b"{", JSON))

    assert "a body of type application/json could not be decoded" in capsys.readouterr().out


def test_headers_are_the_parameters_types_and_what_the_client_sent() -> None:
    sent = wire.Row("r", [("X-Twice", "1"), ("X-Twice", "2"), ("url_path", "p")], [("data", "image/png", b"")])

    assert headers_of(sent) == {"data": {"content-type": "image/png"}, "X-Twice": "2", "url_path": "p"}


@pytest.mark.parametrize(
    ("item", "body", "headers"),
    [
        pytest.param(b"\x00\xff", b"\x00\xff", [], id="bytes"),
        pytest.param(bytearray(b"ab"), b"ab", [], id="a bytearray"),
        pytest.param("café", b"caf\xc3\xa9", [], id="a string, without quotes"),
        pytest.param("\ud800", b"\xed\xa0\x80", [], id="a string with half a surrogate pair"),
        pytest.param({"a": 1}, b'{\n  "a": 1\n}', [("Content-Type", JSON)], id="a dict, indented by two"),
        pytest.param([1, 2.5], b"[\n  1,\n  2.5\n]", [("Content-Type", JSON)], id="a list"),
        pytest.param(3, b"3", [("Content-Type", JSON)], id="a number"),
        pytest.param(True, b"true", [("Content-Type", JSON)], id="a boolean"),
        pytest.param(None, b"null", [("Content-Type", JSON)], id="nothing"),
        pytest.param(math.nan, b"null", [("Content-Type", JSON)], id="NaN, which JSON does not have"),
    ],
)
def test_an_item_becomes_bytes(item: object, body: bytes, headers: list[tuple[str, str]]) -> None:
    assert answer_to(item) == wire.Answer(200, body, "", headers)


def test_a_tensor_of_a_batch_is_saved_without_the_other_rows() -> None:
    batch = torch.arange(6.0).view(3, 2)

    row = torch.load(io.BytesIO(encode_item(batch[1], RequestProcessor({})).body))

    assert (row.tolist(), row.untyped_storage().nbytes()) == ([2.0, 3.0], 8)


def test_a_tensor_is_what_torch_saves() -> None:
    tensor = torch.tensor([1.5, -2.0], device=DEVICE)

    answer = answer_to(tensor)

    assert torch.equal(torch.load(io.BytesIO(answer.body)), tensor)
    assert answer.headers == []


@pytest.mark.parametrize(
    ("item", "plain"),
    [
        pytest.param({"score": np.float32(0.5), "box": torch.tensor([1.0, 2.0], device=DEVICE)},
            {"score": 0.5, "box": [1.0, 2.0]}, id="a scalar and a tensor in a dict"),
        pytest.param(np.array([[1, 2]]), [[1, 2]], id="an array"),
        pytest.param(np.int64(3), 3, id="an integer"),
        pytest.param([np.bool_(1), np.float64(2.5), np.str_("a")], [True, 2.5, "a"], id="scalars of other classes"),
        pytest.param(torch.tensor(1.5).tolist(), 1.5, id="a number"),
        pytest.param([torch.ones(1, requires_grad=True), torch.tensor(2)], [[1.0], 2], id="tensors in a list"),
        pytest.param({np.int64(3): np.array([True])}, {"3": [True]}, id="a key"),
        pytest.param([1.0, math.inf, {"a": (-math.inf, math.nan)}], [1.0, None, {"a": [None, None]}], id="infinities"),
        pytest.param({"a": np.array([math.nan, 1.0])}, {"a": [None, 1.0]}, id="NaN in an array"),
        pytest.param({"a": torch.tensor([math.nan]), "b": np.float32(math.inf)}, {"a": [None], "b": None},
            id="NaN in a tensor"),
        pytest.param({math.nan: 1}, {"NaN": 1}, id="a key that is NaN"),
        pytest.param([math.nan, {1: None, None: True}], [None, {"1": None, "null": True}], id="beside other keys"),
    ],
)  # fmt: skip
def test_numbers_of_numpy_and_torch_are_sent_and_what_json_lacks_is_null(item: object, plain: object) -> None:
    answer = answer_to(item)

    assert json.loads(answer.body, parse_constant=pytest.fail) == plain
    assert answer.body.decode() == json.dumps(plain, indent=2)
    assert answer.headers == [("Content-Type", JSON)]


@pytest.mark.parametrize("name", ["content-type", "Content-Type"])
def test_json_keeps_the_content_type_that_the_handler_set(name: str) -> None:
    processor = RequestProcessor({})
    processor.add_response_property(name, "application/vnd.mine+json")

    answer = encode_item([], processor)

    assert answer.headers == [(name, "application/vnd.mine+json")]


def test_the_handlers_status_phrase_and_headers_are_sent() -> None:
    processor = RequestProcessor({})
    processor.report_status(507, "Full")
    processor.add_response_property("X-Took", "3")

    answer = encode_item(b"Invalid response", processor)

    assert answer == wire.Answer(507, b"Invalid response", "Full", [("X-Took", "3")])


def itself() -> list[Any]:
    item: list[Any] = []
    item.append(item)
    return item


def nested() -> list[Any]:
    item: list[Any] = []
    for _ in range(100_000):
        item = [item]
    return item


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(object(), id="an object"),
        pytest.param({1, 2}, id="a set"),
        pytest.param({"a": np.array([1j])}, id="an array of complex numbers"),
        pytest.param(np.longdouble(1), id="a number that Python has no class for"),
        pytest.param({(1, 2): 3}, id="a key that is no string"),
        pytest.param(itself(), id="a list that holds itself"),
        pytest.param(nested(), id="a list that is nested without end"),
    ],
)
def test_what_json_has_no_form_for_is_refused(item: object) -> None:
    with pytest.raises(NotSerialisable):
        answer_to(item)


@pytest.mark.parametrize("status", [0, 99, 199, 600, -1, "200", None, True, 200.0])
def test_a_status_that_is_none_is_an_error_that_shows_it(status: Any) -> None:
    processor = RequestProcessor({})
    processor.report_status(status)

    answer = encode_item(b"x", processor)

    assert answer.status == 503
    assert (
        answer.body.decode() == f"The handler set the response status {status!r}; expected an integer from 200 to 599."
    )


def test_a_header_or_phrase_that_is_no_text_still_fits_a_frame() -> None:
    processor = RequestProcessor({})
    odd: Any = 7
    processor.report_status(200, odd)
    processor.add_response_property("X-Half", json.loads('"\\ud800"'))
    processor.add_response_property(odd, odd)

    answer = encode_item(b"", processor)

    sent = wire.Done(1, [answer], 0.0)
    assert wire.decode_for_daemon(wire.encode(sent)[wire.LENGTH.size :]) == sent
    assert answer.headers == [("X-Half", "?"), ("7", "7")]


def test_a_failure_carries_torchserves_word() -> None:
    assert failure("no \ud800") == wire.Answer(503, b"no ?", error="InternalServerException")


@pytest.mark.parametrize(
    ("set_up", "message"),
    [
        pytest.param(
            lambda row: row.add_response_property("x-long", "v" * (wire.LONGEST_TEXT + 1)),
            "The handler set a response header of more than 65536 characters: `x-long`.",
            id="a header without end",
        ),
        pytest.param(
            lambda row: [row.add_response_property(f"x-{number}", "v") for number in range(wire.MOST_HEADERS + 1)],
            "The handler set 1001 response headers; at most 1000 are sent.",
            id="too many headers",
        ),
    ],
)
def test_headers_that_no_frame_may_hold_fail_the_row(set_up: Any, message: str) -> None:
    processor = RequestProcessor({})
    set_up(processor)

    assert encode_item(b"x", processor) == failure(message)


def test_a_phrase_without_end_is_cut() -> None:
    processor = RequestProcessor({})
    processor.report_status(200, "p" * (wire.LONGEST_TEXT + 1))

    assert len(encode_item(b"x", processor).phrase) == wire.LONGEST_TEXT
