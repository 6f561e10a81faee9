"""A body as seen by a handler: the same parameters as in TorchServe."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.said import said_in
from tsctl.daemon.api.inference.forms import parse_body
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


@said_in("fields.txt")
def test_the_fields_of_a_urlencoded_form(given: str) -> str:
    types = (URLENCODED, URLENCODED.upper(), URLENCODED + "; charset=utf-8", f" {URLENCODED} ")
    (said,) = {"\n".join(map(str, parse_body(content_type, given.encode()))) for content_type in types}
    return said


K = part('form-data; name="k"', b"v")


@said_in("parts.txt")
def test_parts_of_a_multipart_form(given: str) -> str:
    parts = json.loads(given)
    preamble = parts.pop(0) if parts and isinstance(parts[0], str) else ""
    data = preamble.encode() + multipart(*(part(head, value.encode("latin-1"), *more) for head, value, *more in parts))
    params = parse_body(MULTIPART, data)
    assert params == parse_body(f'Multipart/Form-Data; charset=x; boundary="{BOUNDARY}"', data)
    return "\n".join(map(str, params))


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
