"""What counts names of capabilities counts what it says."""

import re

import pytest

from tests.lab.house import CAPABILITIES, TUPLE, hits, texts_of
from tests.places import ROOT


def test_names_with_their_dots_and_strings_are_read_and_comments_and_docstrings_are_not() -> None:
    source = '"""A docstring."""\nfrom a.b import c  # a comment\nx = d.e["a key"] = (\n    "b",  # of a tuple\n)\n'

    assert texts_of(source) == (
        ("from", 2), ("a.b", 2), ("import", 2), ("c", 2), ("x", 3), ("d.e", 3), ('"a key"', 3), ('"b"', 4),
    )  # fmt: skip


def test_a_line_counts_once_and_not_in_the_list_of_extensions_nor_where_the_word_means_another_thing() -> None:
    source = 'if route.rank_lost and "ranks" in ranks:\n    model.ranks = ranked\n'

    found = hits(dict.fromkeys(("daemon/api/a.py", "daemon/api/management/describe.py", TUPLE), source), "ranks")

    assert [hit[1:] for hit in found] == [("daemon/api/a.py", 1), ("daemon/api/a.py", 2)]


@pytest.mark.parametrize("name", CAPABILITIES)
def test_the_words_of_a_capability_are_found_where_it_lives(name: str) -> None:
    places = CAPABILITIES[name].get("places", [])
    own = [ROOT / each for each in (*places, f"daemon/extensions/{name}", f"tsctl/extensions/{name}", f"tsctl/{name}")]
    files = [file for each in own for file in (each.rglob("*.py") if each.is_dir() else [each]) if file.exists()]

    # There are none where the capability has been left out.
    assert not files or any(re.search(CAPABILITIES[name]["words"], file.read_text()) for file in files)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("routing", "router.routes"), ("sequences", "event.sequence"), ("tracing", "traffic.trace"), ("ray", "ARRAYS"),
        ("residency", "resident_bytes"), ("upgrade", "os.set_inheritable"),
    ],
)  # fmt: skip
def test_a_word_with_another_meaning_is_not_found(name: str, text: str) -> None:
    assert re.search(CAPABILITIES[name]["words"], text) is None
