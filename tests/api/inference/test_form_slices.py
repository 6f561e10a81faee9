"""Large forms: read in slices, whose ends do not show; and nothing of a form is without a limit."""

from urllib.parse import quote_from_bytes

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.api.inference.reference import parts_of, unescaped
from tests.api.inference.test_forms import BOUNDARY, MULTIPART, URLENCODED, multipart, part, stored
from tsctl.daemon.api.inference.forms import MOST_TYPE, Form, parse_body, read_body
from tsctl.daemon.api.inference.multipart import MOST_BOUNDARY, MOST_HEADER_BYTES, MOST_HEADERS, MOST_PARTS
from tsctl.daemon.api.inference.urlencoded import MOST_FIELDS, MOST_NAME_BYTES, SLICE, Urlencoded, read_fields, unquote
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

MULTIPART_SLICE = 256 * 1024
STEPS = 2**26 // SLICE + 10  # more slices than the largest body has


def read(form: Form | list[Param]) -> tuple[list[Param], int]:
    """The parameters of a body, and how many slices it took."""
    if isinstance(form, list):
        return form, 1
    slices = 2
    while not form.advance():
        slices += 1
        assert slices < STEPS, "it makes no progress"
    return form.params, slices


def both(body: bytes) -> list[Payload]:
    """The same body, as it comes and in the arena."""
    return [body, stored(body)]


def seen(params: list[Param]) -> list[tuple[str, str, bytes]]:
    return [(param.name, param.content_type, bytes(param.value)) for param in params]


# Escapes.


@given(st.text(st.sampled_from("%+=&0aFfg\r\n "), max_size=12).map(str.encode) | st.binary(max_size=60))
@example(b"%41%zz")
@example(b"%\n%\r\n%%41%4")
@example(b"=3D%3d=\r\n=")
def test_escapes_mean_what_they_mean_to_urllib(text: bytes) -> None:
    expected = unescaped(text)

    if expected is None:
        with pytest.raises(BadRequest, match="broken escape"):
            unquote(text)
    else:
        assert unquote(text) == expected


@given(st.text(st.sampled_from("%41+=&ab"), max_size=30).map(str.encode) | st.binary(max_size=60))
@example(b"a=1&" * MOST_FIELDS)
@example(b"a=1&" * (MOST_FIELDS + 1))
@example(b"&" * MOST_FIELDS + b"a")
@example(b"&" * MOST_FIELDS + b"n" * (MOST_NAME_BYTES + 1))
@example(b"n" * MOST_NAME_BYTES + b"=1")
@example(b"n" * (MOST_NAME_BYTES + 1) + b"=1")
def test_a_form_of_one_slice_means_what_it_means_to_those_of_many(body: bytes) -> None:
    refusals: list[str] = []
    fields: list[list[tuple[str, str, bytes]]] = []
    for form in (None, Urlencoded(body)):
        try:
            fields.append(seen(read_fields(body) if form is None else read(form)[0]))
        except BadRequest as error:
            refusals.append(str(error))

    assert len(refusals) in (0, 2), "one was refused"
    assert fields[:1] == fields[1:]


@settings(max_examples=40)
@given(
    before=st.integers(SLICE - 12, SLICE + 4),
    text=st.text(st.sampled_from("%+=41ab"), max_size=16).map(lambda text: text.encode()),
    after=st.sampled_from([b"", b"&", b"&b=2", b"x" * SLICE, b"&c=" + b"%41" * SLICE]),
)
def test_the_end_of_a_slice_does_not_show_in_a_urlencoded_form(before: int, text: bytes, after: bytes) -> None:
    body = b"a=" + b"y" * (before - 2) + text + after

    try:
        fields = [pair.partition(b"=") for pair in body.split(b"&") if pair]
        expected = [(name.decode(), "", unquote(value)) for name, _, value in fields]
    except BadRequest:
        for each in both(body):
            with pytest.raises(BadRequest, match="broken escape"):
                read(read_body(URLENCODED, each))
    else:
        for each in both(body):
            assert seen(read(read_body(URLENCODED, each))[0]) == expected


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3 * SLICE), st.sampled_from(["", "%", "+", "é"]))))
def test_values_of_any_size_arrive_as_they_were_meant(fields: list[tuple[str, int, str]]) -> None:
    values = [(name, text.encode() + name.encode() * size + text.encode()) for name, size, text in fields]
    body = b"&".join(f"{name}={quote_from_bytes(value)}".encode() for name, value in values)

    for each in both(body) if body else [body]:
        assert seen(parse_body(URLENCODED, each)) == [(name, "", value) for name, value in values]


def test_a_large_value_of_a_body_in_the_arena_is_decoded_into_the_arena() -> None:
    image = bytes(range(256)) * 1024
    body = f"small=1&image={quote_from_bytes(image)}&text={'x' * 5000}".encode()

    small, large, text = parse_body(URLENCODED, stored(body))

    assert small.value == b"1"
    assert isinstance(large.value, Lease) and bytes(large.value) == image
    assert isinstance(text.value, Lease) and bytes(text.value) == b"x" * 5000


# Parts.


@settings(max_examples=60)
@given(
    before=st.integers(MULTIPART_SLICE - 90, MULTIPART_SLICE + 30),
    pieces=st.lists(st.sampled_from(["\r", "\n", "\r\n", "--", f"--{BOUNDARY}"[:-1], "b", "-", "é"]), max_size=8),
    after=st.integers(0, 2 * MULTIPART_SLICE),
)
def test_the_end_of_a_slice_does_not_show_in_a_multipart_form(before: int, pieces: list[str], after: int) -> None:
    first = "x" * (before - len(part('form-data; name="p0"', b"")))
    values = [first.encode(), "".join(pieces).encode(), b"y" * after]
    parts = [part(f'form-data; name="p{number}"', value) for number, value in enumerate(values)]
    body = multipart(*parts)
    told = parts_of(BOUNDARY.encode(), body)

    for each in both(body):
        params, slices = read(read_body(MULTIPART, each))
        assert seen(params) == [(f"p{number}", "", value) for number, value in enumerate(values)]
        assert slices >= len(body) // (MULTIPART_SLICE + MOST_HEADER_BYTES)
    assert told == values


# Limits.


def field(name: str, value: str = "") -> str:
    return f"{name}={value}"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(URLENCODED, "&".join(field(f"n{i}") for i in range(MOST_FIELDS)).encode(), id="fields"),
        pytest.param(URLENCODED, b"n" * MOST_NAME_BYTES + b"=1", id="a name"),
        pytest.param(MULTIPART, multipart(*(part(f"a; name=n{i}", b"") for i in range(MOST_PARTS))), id="parts"),
        pytest.param(
            MULTIPART, multipart(part("a; name=n", b"v", *["A: b"] * (MOST_HEADERS - 1))), id="headers of a part"
        ),
        pytest.param(
            MULTIPART, multipart(part("a; name=n", b"v", "A: " + "b" * (MOST_HEADER_BYTES - 65))), id="a long header"
        ),
        pytest.param(
            f"multipart/form-data; boundary={'b' * MOST_BOUNDARY}", b"--%b--" % (b"b" * MOST_BOUNDARY), id="b"
        ),
        pytest.param(URLENCODED + ";" + " " * (MOST_TYPE - len(URLENCODED) - 1), b"a=1", id="a content type"),
    ],
)
def test_as_much_as_is_allowed_is_read(content_type: str, body: bytes) -> None:
    for each in both(body):
        read(read_body(content_type, each))


@pytest.mark.parametrize(
    ("content_type", "body", "told"),
    [
        pytest.param(URLENCODED, b"a=1&" * (MOST_FIELDS + 1), f"more than {MOST_FIELDS} fields", id="fields"),
        pytest.param(URLENCODED, b"&" * 2**22, f"more than {MOST_FIELDS} fields", id="fields of nothing"),
        pytest.param(URLENCODED, b"n" * 9000 + b"=1", f"more than {MOST_NAME_BYTES} bytes", id="a name"),
        pytest.param(
            URLENCODED, b"n" * 2**20 + b"=1", f"more than {MOST_NAME_BYTES} bytes", id="a name of many slices"
        ),
        pytest.param(
            MULTIPART,
            multipart(*[part("a; name=n", b"")] * (MOST_PARTS + 1)),
            f"more than {MOST_PARTS} parts",
            id="parts",
        ),
        pytest.param(
            MULTIPART,
            multipart(part("a; name=n", b"v", *["A: b"] * MOST_HEADERS)),
            f"{MOST_HEADERS + 1} headers, at most {MOST_HEADERS}",
            id="headers of a part",
        ),
        pytest.param(
            MULTIPART,
            multipart(part("a; name=n", b"v", "A: " + "b" * MOST_HEADER_BYTES)),
            f"more than {MOST_HEADER_BYTES} bytes",
            id="bytes of headers",
        ),
        pytest.param(
            f"multipart/form-data; boundary={'b' * (MOST_BOUNDARY + 1)}",
            b"--b--",
            f"{MOST_BOUNDARY + 1} bytes, at most {MOST_BOUNDARY}",
            id="a boundary",
        ),
        pytest.param(
            URLENCODED + ";" * MOST_TYPE,
            b"a=1",
            f"{MOST_TYPE + len(URLENCODED)} characters, at most {MOST_TYPE}",
            id="a content type",
        ),
        pytest.param(
            MULTIPART,
            multipart(part("a; name=n", f"\r\n--{BOUNDARY}x".encode())),
            "its boundary is followed by `x",
            id="its own boundary in a value",
        ),
    ],
)
def test_more_is_refused_with_the_limit(content_type: str, body: bytes, told: str) -> None:
    for each in both(body):
        with pytest.raises(BadRequest, match=told):
            read(read_body(content_type, each))


def test_a_small_form_is_one_slice() -> None:
    fields = "&".join(field(f"name-{i}", "%41" * 20) for i in range(MOST_FIELDS)).encode()
    parts = multipart(*(part(f'form-data; name="name-{i}"; filename="x"', b"1") for i in range(MOST_PARTS)))

    assert parse_body(URLENCODED, b'{"a": "' + b"x" * 2**20 + b'"}') == []  # JSON that was sent as a form
    assert read(read_body(URLENCODED, fields))[1] == 1
    assert read(read_body(MULTIPART, parts))[1] == 1


def test_a_slice_is_bounded_whatever_a_body_is_made_of() -> None:
    """Bytes that are searched, and headers that are parsed, both end a slice; tests.lab bounds measures it."""
    heads = multipart(*[part("a; name=n", b"", "A: " + "b" * 4000)] * 200)

    assert read(read_body(URLENCODED, b"a=" + b"%41" * (2**20 // 3)))[1] >= 2**20 // SLICE
    assert read(read_body(MULTIPART, multipart(part("a; name=n", bytes(2**22)))))[1] >= 2**22 // MULTIPART_SLICE
    assert read(read_body(MULTIPART, heads))[1] >= len(heads) // (48 * 1024)
