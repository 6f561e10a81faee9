"""Hostile requests: each has one outcome, however its bytes are cut, and a parser's leniency is nobody's way in."""

import pytest

from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.hostile.outcome import Outcome, Vectors, bytewise, outcome

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


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_it_has_one_outcome(data: bytes, expected: Outcome) -> None:
    assert outcome(data) == expected
    assert outcome(*bytewise(data)) == expected


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_cut_anywhere_changes_no_outcome(table: Vectors) -> None:
    for name, (data, expected) in table.items():
        for cut in range(1, min(len(data), 150)):
            assert outcome(data[:cut], data[cut:]) == expected, (name, cut)
