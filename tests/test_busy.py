"""`python -m tests.lab test-busy`: the order of the tests, and the processes beside them."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import busy
from tests.conftest import shuffled
from tests.e2e.served import running


@dataclass(frozen=True)
class Item:
    """A test, as far as its order is concerned."""

    path: Path
    name: str


ITEMS: list[Any] = [Item(Path(f"test_{file}.py"), f"test_{number}") for file in "abcd" for number in range(9)]


def test_the_order_is_that_of_the_seed() -> None:
    assert shuffled(ITEMS, "7") == shuffled(ITEMS, "7")
    assert shuffled(ITEMS, "7") != shuffled(ITEMS, "8")


def test_every_test_is_there_and_those_of_a_file_are_together() -> None:
    order = shuffled(ITEMS, "7")

    assert sorted(order, key=ITEMS.index) == ITEMS
    files = [item.path for item in order]
    assert sum(one != other for one, other in pairwise(files)) == 3


@pytest.mark.slow
def test_busy_loops_run_only_beside_the_tests() -> None:
    with busy.loops(2) as pids:
        assert len(pids) == 2 and all(map(running, pids))

    assert not any(map(running, pids))
