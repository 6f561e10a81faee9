"""Output in a locale that is not UTF-8."""

import io
import sys

import pytest

from tsctl.streams import prepare


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("caf\u00e9 ×", b"caf\xe9 \xd7"),
        ("\u27f3 \u6a21", b"\\u27f3 \\u6a21"),
    ],
    ids=["letters of the encoding stay", "others are escaped"],
)
def test_characters_that_the_encoding_lacks_are_escaped(
    monkeypatch: pytest.MonkeyPatch, text: str, shown: bytes
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="iso-8859-1", write_through=True))

    prepare()
    print(text, end="")

    assert written.getvalue() == shown


def test_utf_8_lacks_only_halves_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8", write_through=True))

    prepare()
    print("café → ⠋ \ud83c", end="")

    assert written.getvalue() == "café → ⠋ \\ud83c".encode()
