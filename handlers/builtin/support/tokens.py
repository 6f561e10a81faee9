"""Words and n-grams of a text.

The rules are those of torchtext's `basic_english` tokenizer and its n-grams, which models trained with torchtext
expect.
"""

from collections.abc import Callable, Iterator, Sequence

# In this order: the apostrophe is set apart, the quotation mark is dropped, …
_RULES = (
    ("'", " '  "), ('"', ""), (".", " . "), ("<br />", " "), (",", " , "), ("(", " ( "), (")", " ) "), ("!", " ! "),
    ("?", " ? "), (";", " "), (":", " "),
)  # fmt: skip


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation marks."""
    text = text.lower()
    for mark, spaced in _RULES:
        text = text.replace(mark, spaced)
    return text.split()


def get_tokenizer(tokenizer: str | Callable[[str], list[str]] | None) -> Callable[[str], list[str]]:
    """Return a tokenizer by its name in torchtext: `basic_english`, None for white space, or a function itself.

    Raises:
        ValueError: the name is another.
    """
    if tokenizer is None:
        return str.split
    if callable(tokenizer):
        return tokenizer
    if tokenizer != "basic_english":
        raise ValueError(f"there is no tokenizer `{tokenizer}`: only basic_english, None, or a function")
    return tokenize


def ngrams_iterator(token_list: Sequence[str], ngrams: int) -> Iterator[str]:
    """Yield the words, then all runs of two, and so on up to `ngrams` words, joined by a space."""
    for length in range(1, ngrams + 1):
        for start in range(len(token_list) - length + 1):
            yield " ".join(token_list[start : start + length])
