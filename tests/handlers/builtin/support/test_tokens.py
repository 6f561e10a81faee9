"""Words, punctuation marks, and runs of words."""

import json

import pytest

from tests.kit.said import said_in
from tsctl.handlers.builtin.support.tokens import get_tokenizer, ngrams_iterator, tokenize


@said_in("tokens.txt")
def test_a_text_is_split_into_words_and_marks(given: str) -> str:
    return json.dumps(tokenize(json.loads(given)))


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, ["here", "we", "are"]),
        (2, ["here", "we", "are", "here we", "we are"]),
        (5, ["here", "we", "are", "here we", "we are", "here we are"]),
    ],
)
def test_ngrams_come_by_length(length: int, expected: list[str]) -> None:
    assert list(ngrams_iterator(["here", "we", "are"], length)) == expected


def test_a_tokenizer_is_found_by_its_name_in_torchtext() -> None:
    assert get_tokenizer("basic_english") is tokenize
    assert get_tokenizer(None)("A b") == ["A", "b"]
    assert get_tokenizer(list)("ab") == ["a", "b"]
    with pytest.raises(ValueError, match="there is no tokenizer `spacy`"):
        get_tokenizer("spacy")
