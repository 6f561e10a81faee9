"""A few seconds of killed workers under requests that come and go; `chaos-rows` of tests.lab runs ten minutes."""

from argparse import Namespace
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.lab.chaos.rows import storm
from tests.lab.harness.ledger import Ledger


@pytest.mark.slow
@pytest.mark.heavy
def test_nothing_is_unanswered_out_of_order_or_anothers(tmp_path: Path) -> None:
    ledger = Ledger()

    storm(Served(tmp_path), Namespace(seed=1, seconds=8.0), ledger)

    assert (ledger.unanswered, ledger.broken) == ([], [])
    assert ledger.done["workers killed"] > 5
