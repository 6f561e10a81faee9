"""JSON is read without lone surrogates, and written whatever is in a text."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.core.texts.json_text import json_bytes, parse_json

texts = st.text(st.characters(exclude_categories=()), max_size=8)  # with lone surrogates
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


class Named(msgspec.Struct):
    name: str


@given(document=documents)
def test_any_document_is_written_so_that_it_can_be_read(document: Any) -> None:
    parse_json(json_bytes(document))
    assert (parse_json(b'"\\ud83c\\udf89"'), json.loads(json_bytes("🎉"))) == ("🎉", "🎉")


@given(name=texts)
def test_the_texts_of_a_struct_are_too(name: str) -> None:
    assert msgspec.json.decode(json_bytes(Named(name)), type=Named).name == name.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b'{"a": "\\ud83c"}', "half of a surrogate pair", id="half an emoji"),
        pytest.param(b'{"\\udfff": 1}', "half of a surrogate pair", id="a name that is one"),
        pytest.param(b'"\xed\xa0\xbc"', "half of a surrogate pair", id="a surrogate in bytes"),
        pytest.param(b'"\xff"', "invalid start byte", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="brackets without end"),
        pytest.param(b"1" * 5_000, "integer string conversion", id="a number of too many digits"),
        pytest.param(b"{", "Expecting", id="cut off"),
    ],
)
def test_no_document_is_made_of(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(data)
