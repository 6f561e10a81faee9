"""A daemon that is killed a few times; `python -m tests.lab history` does it for minutes, with a new seed each time."""

import tempfile
from argparse import Namespace
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.lab.harness.ledger import Ledger
from tests.lab.history.__main__ import storm


@pytest.mark.heavy
@pytest.mark.slow
def test_after_each_kill_what_was_answered_is_there_and_nothing_else_is() -> None:
    ledger = Ledger()

    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        storm(Served(Path(folder)), Namespace(seed=1, seconds=0.0, kills=4), ledger)

    assert ledger.broken == []
    assert ledger.done["commands"] > 100
