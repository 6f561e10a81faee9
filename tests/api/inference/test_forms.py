"""A body as seen by a handler: the same parameters as in TorchServe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.api.inference.forms import FILE_TYPE, parse_body
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

URLENCODED = "application/x-www-form-urlencoded"
BOUNDARY = "b-8f3a"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"


def part(disposition: str, value: bytes, *headers: str) -> bytes:
    lines = [f"--{BOUNDARY}", f"Content-Disposition: {disposition}", *headers, "", ""]
    return "\r\n".join(lines).encode() + value + b"\r\n"


def multipart(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(
    ("content_type", "kind", "body"),
    [
        pytest.param("", "", b"\x89PNG", id="of no type"),
        pytest.param("application/json", "application/json", b"{}", id="of JSON"),
        pytest.param("text/plain; charset=utf-8", "text/plain", b"a=b", id="of text, whose charset is left out"),
        pytest.param("multipart/mixed; boundary=b", "multipart/mixed", b"--b--", id="of parts that are no form"),
        pytest.param("multipart/form-data", "multipart/form-data", b"--b--", id="of parts without a boundary"),
        pytest.param(";;;=", "", b"x", id="of a type that is none"),
        pytest.param("image/png", "image/png", b"", id="of nothing"),
    ],
)
def test_a_body_is_one_parameter(content_type: str, kind: str, body: bytes) -> None:
    assert parse_body(content_type, body) == [Param("body", kind, body)]


@pytest.mark.parametrize(
    ("body", "params"),
    [
        pytest.param(b"a=1&b=2", [Param("a", "", b"1"), Param("b", "", b"2")], id="each field is one"),
        pytest.param(
            b"a=1&b=2&a=3", [Param("a", "", b"1"), Param("b", "", b"2"), Param("a", "", b"3")], id="names may repeat"
        ),
        pytest.param(b"a=x+y%2B%ff", [Param("a", "", b"x y+\xff")], id="values are decoded to bytes"),
        pytest.param(b"%C3%A9+=1", [Param("é ", "", b"1")], id="names are decoded to text"),
        pytest.param(b"%ff=1", [Param("\ufffd", "", b"1")], id="names that are not UTF-8 are mended"),
        pytest.param(b"a=", [Param("a", "", b"")], id="a value may be empty"),
        pytest.param(b"a=b=c", [Param("a", "", b"b=c")], id="a value may hold the sign"),
        pytest.param(b"a&b=1&&", [Param("a", "", b""), Param("b", "", b"1")], id="what has no sign is empty"),
        pytest.param(b"b=1&a", [Param("b", "", b"1"), Param("a", "", b"")], id="at the end, too"),
        pytest.param(b'{"a": 1}', [], id="unless it is all there is, so a JSON text is nothing"),
        pytest.param(b"", [], id="and nothing is nothing"),
    ],
)
def test_the_fields_of_a_urlencoded_form(body: bytes, params: list[Param]) -> None:
    for content_type in (URLENCODED, URLENCODED.upper(), URLENCODED + "; charset=utf-8", f" {URLENCODED} "):
        assert parse_body(content_type, body) == params


K = part('form-data; name="k"', b"v")
IS_K = [Param("k", "", b"v")]


@pytest.mark.parametrize(
    ("data", "params"),
    [
        pytest.param(K, IS_K, id="a field has no type"),
        pytest.param(
            part('form-data; name="f"; filename="x.png"', b"\x89", "Content-Type: image/png"),
            [Param("f", "image/png", b"\x89")], id="a file has the type it says"),
        pytest.param(
            part('form-data; name="f"; filename="x"', b"v"), [Param("f", FILE_TYPE, b"v")],
            id="a file of no type is bytes"),
        pytest.param(
            part('form-data; name="f"; filename=""', b""), [Param("f", FILE_TYPE, b"")], id="a file may have no name"),
        pytest.param(  # clients send it for a name that is not ASCII, although RFC 7578 forbids it
            part("form-data; name=\"f\"; filename*=UTF-8''caf%C3%A9.png", b"v"), [Param("f", FILE_TYPE, b"v")],
            id="an extended filename makes a file, too"),
        pytest.param(
            part('form-data; name="k"; filename="k"', b"1", "content-TYPE: application/json"),
            [Param("k", "application/json", b"1")], id="header names are read in any case"),
        pytest.param(
            part('form-data; name="k"; filename="k"', b"1", "Content-Type: text/plain; charset=UTF-8"),
            [Param("k", "text/plain", b"1")], id="a charset is left out"),
        pytest.param(
            part('form-data; name="k"', b"v", "Content-Type: application/json"), IS_K,
            id="a field has no type, even if it says one"),
        pytest.param(part("form-data; name=k", b"v"), IS_K, id="the name may go without quotes"),
        pytest.param(part('form-data; name="é"', b"v"), [Param("é", "", b"v")], id="names are UTF-8"),
        pytest.param(part('form-data; name="a\\"b"', b"v"), [Param('a"b', "", b"v")], id="a name may hold a quote"),
        pytest.param(
            part('form-data; name="k"', b"\r\n--b\r\n"), [Param("k", "", b"\r\n--b\r\n")], id="nearly a boundary"),
        pytest.param(K + K, IS_K * 2, id="all parts of a name are read"),
        pytest.param(b"", [], id="none is nothing"),
        *(pytest.param(preamble + K, IS_K, id=f"a preamble is passed over {len(preamble)}")
          for preamble in (b"This is a message in MIME format.\r\n", b"one\r\ntwo\r\n\r\n", b"--other\r\n")),
    ],
)  # fmt: skip
def test_parts_of_a_multipart_form(data: bytes, params: list[Param]) -> None:
    assert parse_body(MULTIPART, multipart(data)) == params
    assert parse_body(f'Multipart/Form-Data; charset=x; boundary="{BOUNDARY}"', multipart(data)) == params


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"),
    [
        *(
            pytest.param(URLENCODED, body, "The form has a", id=f"urlencoded {body.decode()}")
            for body in (b"=1", b"a=1&=2", b"a=%", b"a=%4", b"a=%zz", b"%f=1", b"a=%+1")
        ),
        pytest.param(
            MULTIPART, b"x" * 10_000 + b"\r\n" + multipart(K), "is not in the first 8192 bytes", id="preamble"
        ),
        pytest.param(MULTIPART, b"", "cut short", id="nothing"),
        pytest.param(MULTIPART, b"hello", "broken", id="what is no form"),
        pytest.param(MULTIPART, part('form-data; name="k"', b"v"), "cut short", id="no last boundary"),
        pytest.param(MULTIPART, multipart(part("form-data", b"v")), "has no name", id="a part without a name"),
        pytest.param(MULTIPART, multipart(part('form-data; name=""', b"v")), "has no name", id="an empty name"),
        pytest.param(MULTIPART, multipart(b"--b-8f3a\r\n\r\nv\r\n"), "has no name", id="a part without headers"),
        pytest.param(MULTIPART, multipart(part("x", b"", *["A: b"] * 100)), "broken", id="a part of headers"),
        pytest.param(MULTIPART, multipart(part("x", b"", "A: " + "b" * 10_000)), "broken", id="a long header"),
        pytest.param("multipart/form-data; boundary=" + "b" * 10_000, b"--b", "broken", id="a boundary without end"),
    ],
)
def test_a_broken_form_is_a_bad_request(content_type: str, body: bytes, sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        parse_body(content_type, body)


def stored(body: bytes) -> Lease:
    place = Arena(16 * 1024**2).take(len(body))
    assert place is not None
    place.view[:] = body
    return place


@given(values=st.lists(st.text("\r\n-b83faX", max_size=30), max_size=4))
def test_parts_of_a_body_in_the_arena_stay_there(values: list[str]) -> None:
    names = [f"p{number}" for number in range(len(values))]
    parts = [
        part(f'form-data; name="{name}"; filename="f"', value.encode())
        for name, value in zip(names, values, strict=True)
    ]
    body = multipart(*parts)

    params = parse_body(MULTIPART, stored(body))

    assert [param.name for param in params] == [param.name for param in parse_body(MULTIPART, body)]
    assert [bytes(param.value) for param in params] == [param.value for param in parse_body(MULTIPART, body)]
    assert all(isinstance(param.value, Lease) for param in params)
