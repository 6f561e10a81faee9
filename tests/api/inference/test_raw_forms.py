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
from tsctl.handlers.wire import Declared, Input, InputKind

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


@pytest.mark.parametrize("target", ["/predictions/m", "/predictions/m/1.0", "/v1/models/m:predict", "/models/m/invoke"])
def test_every_route_to_the_model_gives_it_the_whole_body(house: House, target: str) -> None:
    declared = Declared([TEXT], batches=True)

    assert seen(params_of(house, declared, target, b"50% = half", FORM)) == whole(b"50% = half")


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(None, id="a handler of TorchServe's form"),
        pytest.param(Declared([Input("image", "image")], batches=True), id="an image"),
        pytest.param(Declared([], batches=True), id="no input"),
    ],
)
def test_any_other_model_gets_the_fields_of_the_form(house: House, declared: Declared | None) -> None:
    assert seen(params_of(house, declared, "/predictions/m", b"a=1&b=2", FORM)) == [("a", "", b"1"), ("b", "", b"2")]


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


@pytest.mark.parametrize(
    ("inputs", "body", "params"),
    [
        pytest.param((TEXT, TOP), b'{"text": "a&top=b"}', None, id="an object"),
        pytest.param((IMAGE, TOP), b' {"image": "aGk="}', None, id="for an image"),
        pytest.param((IMAGE,), b'{"image": "aGk="}', None, id="for nothing but an image"),
        pytest.param((TEXT,), b'{"text": "a&text=b"}', None, id="for a text"),
        pytest.param((TEXT, TOP), b"50% = half", None, id="a text"),
        pytest.param((TEXT, TOP), b"a=1&b=2", None, id="fields of other names, as for one parameter"),
        pytest.param((TEXT, TOP), b"top=5&more=1", [("top", "", b"5"), ("more", "", b"1")], id="fields"),
        pytest.param((IMAGE,), b"file=1", [("file", "", b"1")], id="no image: the error tells which fields"),
    ],
)
def test_a_body_that_curl_calls_a_form_is_one_only_with_a_field_of_an_input(
    house: House, inputs: tuple[Input, ...], body: bytes, params: list[tuple[str, str, bytes]] | None
) -> None:
    read = params_of(house, Declared(list(inputs), batches=False), "/predictions/m", body, FORM)

    assert seen(read) == (whole(body) if params is None else params)


@pytest.mark.parametrize(
    ("kind", "body", "params"),
    [
        pytest.param("image", b'{"data": "aGk="}', [("body", "application/json", b'{"data": "aGk="}')], id="an object"),
        pytest.param("array", b"[1, 2]", [("body", "application/json", b"[1, 2]")], id="numbers"),
        pytest.param("text", b"[1], all of it", [("body", "", b"[1], all of it")], id="a text"),
        pytest.param("text", b"data=a+text", [("data", "", b"a text")], id="a field data"),
        pytest.param("text", b"text=a+text", [("text", "", b"a text")], id="a field of another name: it is told"),
        pytest.param("text", b"", [], id="nothing"),
        pytest.param("text", b"body=a+text", [("body", "", b"a text")], id="a field body"),
    ],
)
def test_curls_d_for_a_built_in_handler(
    house: House, kind: InputKind, body: bytes, params: list[tuple[str, str, bytes]]
) -> None:
    declared = Declared([Input("data", kind)], batches=True, built_in=True)

    assert seen(params_of(house, declared, "/predictions/m", body, FORM)) == params


def test_another_content_type_is_read_as_ever(house: House) -> None:
    declared = Declared([TEXT], batches=True)

    read = params_of(house, declared, "/predictions/m", b"text=a", "Content-Type: text/plain")

    assert seen(read) == [("body", "text/plain", b"text=a")]


def test_a_large_text_reaches_the_model_through_the_turns(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=10**6)
    house.engine.declared = Declared([TEXT], batches=True)
    text = b"all work & no play = 100% " * 5000

    async def ask() -> bytes:
        await house.serve("m")
        return (await house.ask("POST", "/predictions/m", text, FORM)).body

    assert asyncio.run(ask()) == text


@pytest.mark.parametrize(
    ("target", "body", "is_json"),
    [
        pytest.param("/v1/models/m:predict", b' {"instances": [1]}', True, id="KServe's first protocol is JSON"),
        pytest.param("/v1/models/m:explain", b'{"instances": [1]}', True, id="so are its explanations"),
        pytest.param("/v1/models/m:predict", b"a=1", False, id="a form stays one"),
        pytest.param("/predictions/m", b'{"instances": [1]}', False, id="and on other routes all are forms"),
    ],
)
def test_curls_json_for_kserve(house: House, target: str, body: bytes, is_json: bool) -> None:
    params = params_of(house, None, target, body, FORM)

    assert (params == [Param("body", "application/json", body)]) == is_json
