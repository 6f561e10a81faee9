"""The words of a text, one piece each."""

from collections.abc import Iterator


def predict(text: str) -> Iterator[str]:
    for word in text.split():
        yield f"{word}\n"
