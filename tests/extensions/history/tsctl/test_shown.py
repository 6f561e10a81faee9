"""The history at the command line: what `tsctl top` begins with, and what the page may ask for."""

from typing import Any

from tsctl.extension import PastRate
from tsctl.extensions.history import COMMAND_LINE


def test_each_version_has_its_rates_with_their_times() -> None:
    told: dict[str, Any] = {
        "every": 10,
        "models": [{"name": "m", "version": "1.0", "time": [10.0, 20.0], "requestsPerSecond": [1.0, 2.0]}],
    }

    past = COMMAND_LINE.past({"/tsctl/history": told}.__getitem__)

    assert past == {("m", "1.0"): [PastRate(10.0, 1.0), PastRate(20.0, 2.0)]}


def test_a_page_may_ask_for_it_by_model_alone() -> None:
    assert COMMAND_LINE.documents == {"history": frozenset({"model"})}
