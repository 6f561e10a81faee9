"""Hostile requests: each has one outcome, however its bytes are cut, and a parser's leniency is nobody's way in."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.hostile.outcome import Outcome, Vectors, bytewise, outcome
from tests.http.peer import GET

TABLES = {
    "length": LENGTHS,
    "encoding": ENCODINGS,
    "chunk": CHUNKS,
    "target": TARGETS,
    "version": VERSIONS,
    "method": METHODS,
    "header": HEADERS,
}
CASES = [
    pytest.param(data, expected, id=f"{kind} {name}")
    for kind, table in TABLES.items()
    for name, (data, expected) in table.items()
]
STREAMS = [data for table in TABLES.values() for data, _ in table.values() if len(data) < 300]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_it_has_one_outcome(data: bytes, expected: Outcome) -> None:
    assert outcome(data) == expected
    assert outcome(*bytewise(data)) == expected


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_cut_anywhere_changes_no_outcome(table: Vectors) -> None:
    for name, (data, expected) in table.items():
        for cut in range(1, min(len(data), 150)):
            assert outcome(data[:cut], data[cut:]) == expected, (name, cut)


@given(st.sampled_from(STREAMS), st.sampled_from(STREAMS), st.lists(st.integers(0, 600), max_size=6))
def test_cuts_anywhere_change_no_outcome(first: bytes, second: bytes, cuts: list[int]) -> None:
    data = first + second
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})

    assert outcome(*(data[a:b] for a, b in itertools.pairwise(places))) == outcome(data)


@given(st.sampled_from(STREAMS), st.integers(0, 300), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_request_is_seen_alike_too(data: bytes, place: int, put: bytes, gone: int) -> None:
    place %= len(data)
    damaged = data[:place] + put + data[place + gone :] + GET

    assert in_short(outcome(*bytewise(damaged))) == in_short(outcome(damaged))


def in_short(seen: Outcome) -> Outcome:
    """Leave out which refusal it was: of two faults side by side, either may be found first."""
    return ["refused" if isinstance(each, int) else each for each in seen]
