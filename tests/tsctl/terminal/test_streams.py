"""Output in a locale that is not UTF-8."""

import codecs
import io
import sys

import pytest

from tsctl.streams import HANDLER, plain, prepare


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("iso-8859-1", "1 → 2, ≤ 5 ms … █▌", b"1 -> 2, <= 5 ms ... ##"),
        ("iso-8859-1", "caf\u00e9 ×", b"caf\xe9 \xd7"),
        ("iso-8859-1", "\u27f3 \u6a21", b"\\u27f3 \\u6a21"),
        ("iso-8859-1", "⠋ loading", b"* loading"),
        ("utf-8", "café → ⠋ \ud83c", "café → ⠋ \\ud83c".encode()),
    ],
    ids=["drawings are like themselves", "letters stay", "others are escaped", "the spinner", "halves of characters"],
)
def test_characters_that_the_encoding_lacks_are_replaced(
    monkeypatch: pytest.MonkeyPatch, encoding: str, text: str, shown: bytes
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, write_through=True))

    prepare()
    print(text, end="")

    assert written.getvalue() == shown


def test_every_character_has_a_plain_text() -> None:
    assert all(plain(chr(code)).isascii() for code in (*range(0x80, 0x3000), 0x1F600))


def test_bytes_that_cannot_be_decoded_are_not_its_matter() -> None:
    prepare()

    with pytest.raises(UnicodeDecodeError):
        codecs.decode(b"\xff", "utf-8", HANDLER)
