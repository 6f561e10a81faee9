"""The counter counts what it says: names of capabilities, and what commits modify."""

import re
from textwrap import dedent

import pytest

from tests.lab.counter.capabilities import CAPABILITIES, Capability
from tests.lab.counter.tree import TUPLE, Commit, hits, read_log, texts_of
from tests.places import ROOT

SHADOWS = Capability("shadowing", re.compile(r"(?i:shadow)|\bmirror\b"), (), ("daemon/http/",))


def test_names_with_their_dots_and_strings_are_read_and_comments_and_docstrings_are_not() -> None:
    source = dedent(
        '''
        """A docstring."""
        from tsctl.daemon import models  # a comment

        def put(route):
            """Another docstring."""
            registry.routes.by_model["a key"] = (
                "a string",  # of a tuple
            )
        '''
    )

    assert [(each.text, each.line) for each in texts_of(source)] == [
        ("from", 3), ("tsctl.daemon", 3), ("import", 3), ("models", 3), ("def", 5), ("put", 5), ("route", 5),
        ("registry.routes.by_model", 7), ('"a key"', 7), ('"a string"', 8),
    ]  # fmt: skip


def test_a_line_counts_once_and_not_in_the_list_of_extensions_nor_where_the_word_means_another_thing() -> None:
    source = 'if route.shadow and "shadow" in shadows:\n    model.mirror = mirrored\n'

    found = hits(dict.fromkeys(("daemon/api/predict.py", "daemon/http/parser.py", TUPLE), source), [SHADOWS])

    assert [hit[1:] for hit in found] == [("daemon/api/predict.py", 1), ("daemon/api/predict.py", 2)]


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.name)
def test_the_words_of_a_capability_are_found_where_it_lives(capability: Capability) -> None:
    name = capability.name
    places = (*capability.places, f"daemon/extensions/{name}", f"tsctl/extensions/{name}", f"tsctl/{name}")
    own = [place for place in map(ROOT.joinpath, places) if place.exists()]

    texts = [file.read_text() for place in own for file in (place.rglob("*.py") if place.is_dir() else [place])]

    assert not texts or any(map(capability.words.search, texts))  # none where the capability has been left out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("routing", "router.routes"),
        ("sequences", "event.sequence"),
        ("tracing", "traffic.trace"),
        ("ray", "ARRAYS"),
        ("residency", "resident_bytes"),
        ("upgrade", "os.set_inheritable"),
    ],
)
def test_a_word_with_another_meaning_is_not_found(name: str, text: str) -> None:
    words = next(capability.words for capability in CAPABILITIES if capability.name == name)

    assert words.search(text) is None


def test_the_files_that_a_commit_modifies_outside_its_own_folder_are_of_the_product() -> None:
    log = (
        "\x00abc tracing: moved\n\ndaemon/extensions/tracing/span.py\ntests/extensions/tracing/test_span.py\n"
        "daemon/extensions/grpc/server.py\ndaemon/server/extensions.py\ndocs/testing.md\n\x00def docs: better\n"
    )

    first, second = read_log(log)

    assert first.extension == "tracing"
    assert first.outside == ["daemon/extensions/grpc/server.py", "daemon/server/extensions.py"]
    assert second == Commit("def", "docs: better", ())
    assert (second.extension, second.outside) == ("", [])
