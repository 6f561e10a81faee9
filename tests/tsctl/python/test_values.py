"""Python values become bodies, and answers become Python values."""

import array
import datetime
import io
import json
import time
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.api.inference.forms import parse_body
from tsctl.python.answers import ReceivedAnswer, TextPieces, check, retry_after
from tsctl.python.errors import DeadlineExceeded, ErrorAnswer, Overloaded, UnreadableAnswer
from tsctl.python.inputs import NPY, encode, encode_parts


@pytest.mark.parametrize(
    ("given", "body", "kind"),
    [
        pytest.param(["añ"], "añ".encode(), "text/plain; charset=utf-8", id="text"),
        pytest.param([{"a": [1, None, "ñ"]}], '{"a": [1, null, "ñ"]}'.encode(), "application/json", id="an object"),
        pytest.param([[1.5, True]], b"[1.5, true]", "application/json", id="a list"),
        pytest.param([(1, 2)], b"[1, 2]", "application/json", id="a tuple"),
        pytest.param([3], b"3", "application/json", id="a number"),
        pytest.param([b"\xff"], b"\xff", "", id="bytes"),
        pytest.param([memoryview(b"ab")], b"ab", "", id="a view"),
        pytest.param([None], b"", "", id="nothing"),
        pytest.param(["a,b", "text/csv"], b"a,b", "text/csv", id="a type that is given wins"),
        pytest.param(["a", ""], b"a", "", id="also none"),
    ],
)
def test_a_value_has_a_body_and_a_type(given: list[Any], body: bytes, kind: str) -> None:
    assert encode(*given) == (body, kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "image/png"), ("a.json", "application/json"), ("a.txt", "text/plain"), ("a.npy", NPY), ("a.zzz", "")],
)
def test_a_path_is_the_file_that_it_names(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(b"\x00content")

    assert encode(tmp_path / name) == (b"\x00content", kind)


def test_an_array_is_npy_that_numpy_reads_without_pickle() -> None:
    sent = np.arange(6, dtype="float32").reshape(2, 3)

    body = encode(sent)

    read = np.load(io.BytesIO(body.content), allow_pickle=False)
    assert body.content_type == NPY
    assert (read.dtype, read.tolist()) == (sent.dtype, sent.tolist())
    assert encode(np.float64(1.5)) == (b"1.5", "application/json")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        encode(np.array([object()]))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "RGBA"])
def test_an_image_is_png(mode: str) -> None:
    image = pytest.importorskip("PIL.Image")

    body = encode(image.new(mode, (3, 2)))

    assert body.content_type == "image/png"
    assert image.open(io.BytesIO(body.content)).size == (3, 2)


def test_a_sound_is_wav() -> None:
    from tsctl import Audio
    from tsctl.handlers.requests.audio import decode_audio

    body = encode(Audio(np.full((2, 3), 0.25, "float32"), 8000))

    assert body.content_type == "audio/wav"
    assert decode_audio(body.content).channels.tolist() == pytest.approx(np.full((2, 3), 0.25), abs=1e-4)


@pytest.mark.parametrize("value", [object(), {1, 2}, array.array("b"), datetime.date(2000, 1, 1), {"a": object()}])
def test_anything_else_is_named_with_what_can_be_sent(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        encode(value)
    with pytest.raises(ValueError, match="cannot be sent as JSON"):
        encode([float("nan")])


def test_parts_arrive_with_their_names_types_and_bytes(tmp_path: Path) -> None:
    (tmp_path / 'c"a\\t.png').write_bytes(b"\x89png\r\n--")

    body = encode_parts({"image": tmp_path / 'c"a\\t.png', "größe": {"w": 3}, "prompt": "a cat", "raw": b"\x00"})

    found = {
        param.name: (param.content_type, bytes(param.value)) for param in parse_body(body.content_type, body.content)
    }
    assert found == {
        "image": ("image/png", b"\x89png\r\n--"),
        "größe": ("application/json", b'{"w": 3}'),
        "prompt": ("text/plain", b"a cat"),
        "raw": ("application/octet-stream", b"\x00"),
    }


@given(st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=50), min_size=1, max_size=4))
def test_any_bytes_arrive_in_a_part(parts: dict[str, bytes]) -> None:
    body = encode_parts(parts)

    assert {param.name: bytes(param.value) for param in parse_body(body.content_type, body.content)} == parts


@pytest.mark.parametrize("parts", [{}, {"": 1}])
def test_a_form_has_parts_with_names(parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="part"):
        encode_parts(parts)


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        ("application/json", b"[1]", [1]),
        ("Application/JSON; charset=utf-8", b'{"a": null}', {"a": None}),
        ("application/problem+json", b"1", 1),
        ("text/plain", "ñ".encode(), "ñ"),
        ("text/html; charset=latin-1", "ñ".encode("latin-1"), "ñ"),
        ("text/plain; charset=no-such", b"a", "a"),
        ("image/png", b"\x89", b"\x89"),
        ("", b"abc", b"abc"),
    ],
)
def test_an_answer_is_decoded_by_its_type(kind: str, body: bytes, value: Any) -> None:
    assert ReceivedAnswer(200, {"content-type": kind} if kind else {}, body).value == value
    with pytest.raises(UnreadableAnswer, match="says application/json, and is not"):
        _ = ReceivedAnswer(200, {"content-type": "application/json"}, b"oops").value


def refused(status: int, body: bytes, **headers: str) -> Exception:
    with pytest.raises(Exception) as caught:
        check(ReceivedAnswer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body))
    return caught.value


def document(message: str) -> bytes:
    return json.dumps({"code": 1, "type": "K", "message": message}).encode()


def test_an_error_of_the_daemon_has_its_words() -> None:
    error = refused(404, document("Model not found: net"), x_request_id="9")

    assert isinstance(error, ErrorAnswer)
    assert (error.message, error.kind, error.status, error.request_id) == ("Model not found: net", "K", 404, "9")
    assert str(error) == "Model not found: net (status 404, request 9)"
    named = refused(503, document("Prediction failed (Request 9)"), x_request_id="9")
    assert str(named) == "Prediction failed (Request 9) (status 503)"


@pytest.mark.parametrize("body", [b"too bad", b'["too bad"]', b'{"why": "too bad"}', b"x" * 10_000])
def test_an_error_of_the_handler_has_its_body_which_is_cut_in_the_message_only(body: bytes) -> None:
    error = refused(422, body)

    assert isinstance(error, ErrorAnswer) and error.body == body
    assert error.message == body.decode() if len(body) < 200 else len(error.message) < 250


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (503, {"retry_after": "3"}, Overloaded),
        (503, {}, ErrorAnswer),
        (504, {}, DeadlineExceeded),
    ],
)
def test_the_kind_of_an_error(status: int, headers: dict[str, str], kind: type[Exception]) -> None:
    assert type(refused(status, document("m"), **headers)) is kind


@given(st.text(), st.lists(st.integers(min_value=0), max_size=6))
def test_text_in_pieces_is_the_same_text(text: str, places: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = TextPieces({"content-type": "text/plain"})

    decoded = [str(pieces.decode(data[a:b])) for a, b in pairwise(edges)]

    assert "".join([*decoded, pieces.rest()]) == data.decode()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def value_of(body: bytes) -> Any:
    return ReceivedAnswer(200, {"content-type": NPY}, body).value


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), np.int8)), np.float32(3), np.zeros((0, 4))],
    ids=["rows", "columns first", "a scalar", "empty"],
)
def test_an_npy_answer_is_an_array(array: Any) -> None:
    read = value_of(npy(array))

    assert read.dtype == np.asarray(array).dtype and read.shape == np.shape(array)
    assert read.tolist() == np.asarray(array).tolist() and read.flags.writeable


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no array", npy(np.ones(4))[:-1], npy(np.ones(4)) + b"x",
        npy(np.ones(4)).replace(b"(4,)", b"(9999999999999,)"), npy(np.array(["a"])).replace(b"<U1", b"|O8"),
    ],
    ids=["nothing", "text", "too short", "too long", "a shape beyond memory", "objects"],
)  # fmt: skip
def test_a_body_that_is_no_array_is_told_so(body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="npy"):
        value_of(body)


@pytest.mark.parametrize(
    ("status", "text", "seconds"),
    [
        (503, "3", 3.0), (503, "", None), (503, "soon", None), (503, "9" * 20, None), (503, "²", None),
        (500, "3", None),
        (503, formatdate(0, usegmt=True), 0.0), (503, "Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)  # fmt: skip
def test_seconds_to_wait(status: int, text: str, seconds: float | None) -> None:
    assert retry_after(status, {"retry-after": text}) == seconds


def test_a_date_to_wait_for() -> None:
    before = time.time()
    found = retry_after(503, {"retry-after": formatdate(before + 30, usegmt=True)})

    assert found is not None and 29 - (time.time() - before) <= found <= 30  # a date has whole seconds
