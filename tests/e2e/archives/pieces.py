"""The words of a text, one piece each."""

from collections.abc import Iterator


def predict(text: str) -> Iterator[str]:
    yield from text.split()
