"""Words, punctuation marks, and runs of words."""

import pytest

from tsctl.handlers.builtin.support.tokens import get_tokenizer, ngrams_iterator, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "You can now install TorchText using pip!",
            ["you", "can", "now", "install", "torchtext", "using", "pip", "!"],
        ),
        ("it's", ["it", "'", "s"]),
        ('say "so"', ["say", "so"]),
        ("a;b:c", ["a", "b", "c"]),
        ("(yes), no.", ["(", "yes", ")", ",", "no", "."]),
        ("one<br />two", ["one", "two"]),
        ("  ", []),
    ],
)
def test_a_text_is_split_into_words_and_marks(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


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
