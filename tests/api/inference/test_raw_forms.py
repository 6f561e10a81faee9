"""`curl -d TEXT` for a model whose one input is text or JSON: the body is the input, unless its field is there."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.house import House
from tests.api.inference.test_form_slices import both, seen
from tsctl.daemon.api.inference.raw_forms import WINDOW, RawForm, is_urlencoded, read_raw_form
from tsctl.daemon.api.inference.urlencoded import SLICE
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param
from tsctl.handlers.wire import Declared, Input

TEXT = Input("text", "text", "str")
JSON = Input("text", "json", "list[int]")
FORM = "Content-Type: application/x-www-form-urlencoded"


def declared(*inputs: Input, built_in: bool = False) -> Declared:
    return Declared(list(inputs), batches=True, built_in=built_in)


def whole(body: bytes) -> list[tuple[str, str, bytes]]:
    return [("body", "", body)]


@pytest.mark.parametrize(
    ("wanted", "body", "params"),
    [
        pytest.param(TEXT, b"A quick fox.", None, id="a text is no form"),
        pytest.param(TEXT, b"1 + 1 = 2 & 100% sure", None, id="nor is one with the signs of a form"),
        pytest.param(TEXT, b"=", None, id="nor one that would be a broken form"),
        pytest.param(TEXT, b"", None, id="nor an empty one"),
        pytest.param(TEXT, b"context=a&texts=b", None, id="other names are no field of it"),
        pytest.param(TEXT, b"text=A+quick%20fox", [("text", "", b"A quick fox")], id="its field is"),
        pytest.param(TEXT, b"n=1&text=a", [("n", "", b"1"), ("text", "", b"a")], id="with the others beside it"),
        pytest.param(JSON, b"[1, 2, 3]", None, id="a list is no form"),
        pytest.param(JSON, b' {"url": "/?a=1&text=b"}', None, id="nor an object, whatever is in it"),
        pytest.param(JSON, b'"a&text=b"', None, id="nor a string"),
        pytest.param(Input("text", "tensor"), b'["&text=b"]', None, id="nor the list of a tensor"),
        pytest.param(JSON, b"text=[1]", [("text", "", b"[1]")], id="JSON in its field is"),
        pytest.param(Input("straße", "text"), b"stra%C3%9Fe=a", [("straße", "", b"a")], id="an encoded name"),
        pytest.param(Input("straße", "text"), "straße=a".encode(), [("straße", "", b"a")], id="and as it is"),
    ],
)  # fmt: skip
def test_read_raw_form(wanted: Input, body: bytes, params: list[tuple[str, str, bytes]] | None) -> None:
    for payload in both(body):
        read = read_raw_form(payload, declared(wanted))
        if isinstance(read, RawForm):
            while not read.advance():
                pass
            read = read.params

        assert read is not None and seen(read) == (whole(body) if params is None else params)


def test_a_form_with_its_field_must_be_a_right_one() -> None:
    with pytest.raises(BadRequest, match="broken escape: `% s`"):
        read_raw_form(b"text=100% sure", declared(TEXT))


@pytest.mark.parametrize("before", [SLICE + 1, WINDOW - 3, WINDOW, WINDOW + 4, 3 * WINDOW - 5])
def test_in_a_large_body_the_field_is_found_wherever_a_slice_ends(before: int) -> None:
    body = b"x=" + b"a" * (before - 2) + b"&text=" + b"b" * 10
    for payload in both(body):
        form = read_raw_form(payload, declared(TEXT))
        assert isinstance(form, RawForm)
        steps = 1
        while not form.advance():
            steps += 1

        assert [(param.name, len(param.value)) for param in form.params] == [("x", before - 2), ("text", 10)]
        assert steps > before // WINDOW


def test_a_large_text_is_left_whole_and_where_it_is() -> None:
    for payload in both(b"no & form = " * WINDOW):
        form = read_raw_form(payload, declared(TEXT))
        assert isinstance(form, RawForm)
        steps = 1
        while not form.advance():
            steps += 1

        assert form.params[0].value is payload and steps == 12


@given(st.binary(max_size=40), st.sampled_from([TEXT, JSON]))
def test_a_body_without_the_name_is_always_given_whole(body: bytes, wanted: Input) -> None:
    if b"text=" not in body:
        read = read_raw_form(body, declared(wanted))

        assert isinstance(read, list) and seen(read) == whole(body)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/x-www-form-urlencoded", True), ("Application/X-WWW-Form-URLEncoded; charset=utf-8", True),
        ("application/x-www-form-urlencoded2", False), ("multipart/form-data; boundary=x", False),
        ("text/plain", False), ("", False),
    ],
)  # fmt: skip
def test_is_urlencoded(content_type: str, expected: bool) -> None:
    assert is_urlencoded(content_type) is expected


# Through the routes.


def params_of(house: House, declared: Declared | None, target: str, body: bytes, *headers: str) -> list[Param]:
    house.engine.declared = declared
    asyncio.run(house.serve("m"))
    house.send("POST", target, body, *headers)
    house.clock.settle()
    (job,) = house.engine.workers[-1].batches[0].jobs
    return list(job.params)


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0=&image=%zz"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0=&image=%zz"
IMAGES = {
    "PNG": PNG, "JPEG": JPEG, "GIF, 61 pixels wide": b"GIF89a=\0\2\0&%zz", "WebP": b"RIFF\x3d\0\0\0WEBPVP8 &%zz",
    "BMP": b"BM=\0\0\0\0\0\0\0\x36\0&%zz", "TIFF": b"II*\0=&%zz", "AVIF": b"\0\0\0 ftypavif=&%zz",
    "WAV": b"RIFF\x3d\0\0\0WAVEfmt &%zz", "FLAC": b"fLaC\0\0\0\x22=&%zz", "Ogg": b"OggS\0=&%zz",
}  # fmt: skip
IMAGE = Input("image", "image")
TOP = Input("top", "json", "int")
BUILT_IN = Declared([Input("data", "image")], batches=True, built_in=True)


@pytest.mark.parametrize("body", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize(
    "declared",
    [None, BUILT_IN, Declared([IMAGE], batches=True), Declared([IMAGE, TOP], batches=False)],
    ids=["TorchServe's form", "built in", "one parameter", "several"],
)
def test_a_file_by_curls_data_binary_is_the_whole_body(house: House, declared: Declared | None, body: bytes) -> None:
    assert seen(params_of(house, declared, "/predictions/m", body, FORM)) == whole(body)


def test_a_large_text_reaches_the_model_through_the_turns(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=10**6)
    house.engine.declared = Declared([TEXT], batches=True)
    text = b"all work & no play = 100% " * 5000

    async def ask() -> bytes:
        await house.serve("m")
        return (await house.ask("POST", "/predictions/m", text, FORM)).body

    assert asyncio.run(ask()) == text
