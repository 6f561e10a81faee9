"""Large JSON in windows: it is walked and checked as msgspec does in one go."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps, finish
from tsctl.daemon.extensions.json_text import syntax, walk
from tsctl.daemon.extensions.json_text.syntax import check_syntax
from tsctl.daemon.extensions.json_text.walk import Found, JsonText

WINDOW = 24  # bytes, of texts that are short
TEXTS = st.text('ab\\"[]{},:\u20acé\U0001f389\n', max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)

FEW = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for module in (syntax, walk):
            patch.setattr(module, "WINDOW", WINDOW)
        patch.setattr(walk, "_FIRST", 4)
        yield


def written(value: object, *, ascii_only: bool, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()


def end_of(text: JsonText) -> Steps[int]:
    return (yield from text.value(0))


def is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


@FEW
@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.sampled_from([b"", b" ", b"]", b'"', b"}", b",1"]))
def test_a_value_ends_where_it_does(value: object, ascii_only: bool, indent: int | None, after: bytes) -> None:
    data = written(value, ascii_only=ascii_only, indent=indent)

    assert finish(end_of(JsonText(memoryview(data + after)))) == len(data)


@FEW
@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans())
def test_members_are_found_whatever_is_in_them(value: dict[str, object], ascii_only: bool) -> None:
    data = written(value, ascii_only=ascii_only, indent=None)
    text = JsonText(memoryview(data))

    found = finish(text.document(8, "it"))

    assert {each.name: json.loads(text.part(each)) for each in found} == value


@FEW
@given(st.lists(VALUES, max_size=4))
def test_elements_are_found_whatever_is_in_them(value: list[object]) -> None:
    data = written(value, ascii_only=False, indent=1)
    text = JsonText(memoryview(data))

    found = finish(text.elements(Found("", 0, len(data)), 8, "things"))

    assert [json.loads(text.part(each)) for each in found] == value


@FEW
@given(VALUES, st.booleans(), st.data())
def test_what_msgspec_takes_for_json_is_taken_for_json_and_nothing_else(
    value: object, ascii_only: bool, choice: st.DataObject
) -> None:
    data = bytearray(written(value, ascii_only=ascii_only, indent=None))
    for _ in range(choice.draw(st.integers(0, 2))):
        at = choice.draw(st.integers(0, len(data) - 1))
        data[at : at + choice.draw(st.integers(0, 2))] = choice.draw(
            st.sampled_from([b"", b",", b"]", b"[", b"{", b"}", b'"', b"\\", b":", b" ", b"1", b"\\u12", b"\n"])
        )
        if not data:
            return
    checked = True
    try:
        finish(check_syntax(memoryview(bytes(data))))
    except BadRequest:
        checked = False

    assert checked == is_json(bytes(data)), bytes(data)


NO_OBJECTS = (
    b"", b"[", b'["', b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b"{1:1}", b'{"a" 1}', b'{"a":1 2}', b"{}x",
    b"[]", b'{"a":}', b'{"a":' + b"[" * 99,
)  # fmt: skip


@pytest.mark.parametrize("data", NO_OBJECTS)
def test_what_is_no_object_is_refused_and_ends(data: bytes) -> None:
    with pytest.raises(BadRequest):
        finish(JsonText(memoryview(data)).document(9, "it"))


def test_a_member_that_another_one_replaces_is_read_too() -> None:
    with pytest.raises(BadRequest, match="malformed"):
        finish(JsonText(memoryview(b'{"a": [1 2], "a": 3}')).document(8, "it"))

    (found,) = finish(JsonText(memoryview(b'{"a": [1, 2], "a": 3}')).document(8, "it"))
    assert (found.name, found.start) == ("a", 19)


def test_the_first_member_and_the_first_element_too_many_end_the_walk() -> None:
    with pytest.raises(BadRequest, match="more than 3 members in the request"):
        finish(JsonText(memoryview(b'{"a":1,"a":1,"a":1,"a":1,')).document(3, "the request"))
    with pytest.raises(BadRequest, match="more than 3 inputs"):
        finish(JsonText(memoryview(b"[1,1,1,1,")).elements(Found("", 0, 9), 3, "inputs"))
