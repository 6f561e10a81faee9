"""English texts, as the models that were trained with torchtext saw them."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.handlers.builtin.support import cleaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't", "I do not"),
        ("Don't", "Do not"),
        ("they'd've", "they would have"),
        ("shouldn't've", "should not have"),
        ("can't've", "cannot have"),
        ("y'all're", "you all are"),
        ("'cause it's ma'am's", "because it is madams"),
        ("the spirit's here", "the spirit is here"),
        ("He'll", "He will"),
        ("the dog's bone", "the dogs bone"),
        ("rock 'n' roll", "rock n roll"),
        ("it'\u017f me, \u0131'm", "it\u017f me, \u0131m"),  # letters that only ignoring the case makes an s and an i
    ],
)
def test_contractions_are_written_out(text: str, expected: str) -> None:
    assert cleaning.expand_contractions(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("naïve café", "naive cafe"), ("Ångström", "Angstrom"), ("日本 ok", " ok"), ("½", "12")],
)
def test_accents_go_and_what_is_no_ascii_with_them(text: str, expected: str) -> None:
    assert cleaning.remove_accents(text) == expected


@given(st.text("a\u00e9\u0301\u0323\uac01\ufdfa\ud83c", min_size=60, max_size=200))
def test_accents_are_those_of_the_whole_texts_decomposition(text: str) -> None:
    assert cleaning.remove_accents(text) == normalize("NFKD", text).encode("ascii", "ignore").decode()


def test_a_letter_of_many_accents_does_not_keep_a_worker_for_minutes() -> None:
    assert cleaning.remove_accents("a" + "\u0301" * 200_000 + "\u0323" * 200_000) == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("<b>bold</b> &amp; new", "bold  new"), ("a &#38; b &#x26;", "a  b "), ("1 < 2", "1 < 2"), ("<br />x", "x")],
)
def test_tags_and_entities_go(text: str, expected: str) -> None:
    assert cleaning.remove_tags(text) == expected


@given(st.text("<>&;#x1a\n "))
def test_tags_and_entities_are_those_of_torchserves_expression(text: str) -> None:
    assert cleaning.remove_tags(text) == cleaning.CLEANUP_REGEX.sub("", text)


def test_a_text_of_tags_that_never_end_does_not_keep_a_worker_for_hours() -> None:
    assert cleaning.remove_tags("<" * 1_000_000) == "<" * 1_000_000


def test_cleaning_does_all_of_it_and_lowers_the_case() -> None:
    assert cleaning.clean("<p>It's NOT the Café's “best”, isn't it?</p>") == "it is not the cafes best is not it"
