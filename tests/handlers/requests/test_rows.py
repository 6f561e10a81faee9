"""Rows and answers, byte for byte; what handlers get and send is in `conversations/rows.txt`."""

import io
import json
import math
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.requests.rows import decode_rows, encode_item, failure
from tsctl.handlers.sdk.request_processor import RequestProcessor

JSON = "application/json"


def decode_row(row: wire.Row) -> dict[str, Any]:
    (decoded,) = decode_rows([row], decode=True)
    return decoded


def answer_to(item: Any) -> wire.Answer:
    return encode_item(item, RequestProcessor({}))


def test_a_view_into_a_frame_is_decoded_as_bytes_are() -> None:
    view: Any = memoryview(b"[1]")

    assert decode_row(row(view, JSON)) == {"body": [1]}
    assert decode_row(row(view, "text/plain")) == {"body": "[1]"}
    assert decode_row(row(view)) == {"body": bytearray(b"[1]")}


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

    answer = answer_to(batch[1].to(DEVICE))
    row = torch.load(io.BytesIO(answer.body), map_location="cpu")

    assert (row.tolist(), row.untyped_storage().nbytes(), answer.headers) == ([2.0, 3.0], 8, [])


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
    processor.report_status(200, "p" * (wire.LONGEST_TEXT + 1))
    assert len(encode_item(b"x", processor).phrase) == wire.LONGEST_TEXT
    assert failure("no \ud800") == wire.Answer(503, b"no ?", error="InternalServerException")
