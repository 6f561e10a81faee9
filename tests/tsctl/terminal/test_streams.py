"""Output in a locale that is not UTF-8."""

import codecs
import io
import sys

import pytest

from tsctl.streams import HANDLER, plain, prepare


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 → 2, ≤ 5 ms … █▌", b"1 -> 2, <= 5 ms ... ##"),
        ("caf\u00e9 ×", b"caf\xe9 \xd7"),
        ("\u27f3 \u6a21", b"\\u27f3 \\u6a21"),
        ("⠋ loading", b"* loading"),
    ],
    ids=["drawings are like themselves", "letters of the encoding stay", "others are escaped", "the spinner"],
)
def test_characters_that_the_encoding_lacks_are_replaced(
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


def test_every_character_has_a_plain_text() -> None:
    assert all(plain(chr(code)).isascii() for code in (*range(0x80, 0x3000), 0x1F600))


def test_bytes_that_cannot_be_decoded_are_not_its_matter() -> None:
    prepare()

    with pytest.raises(UnicodeDecodeError):
        codecs.decode(b"\xff", "utf-8", HANDLER)
