"""A daemon that is killed a few times; `python -m tests.lab history` does it for minutes, with a new seed each time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.lab.history.__main__ import Run

KILLS = 4


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(Served(tmp_path), seed=1)
    yield run
    run.served.stop()


@pytest.mark.heavy
@pytest.mark.slow
def test_after_each_kill_what_was_answered_is_there_and_nothing_else_is(run: Run) -> None:
    for _ in range(KILLS):
        run.round()

    assert run.operations > 100
