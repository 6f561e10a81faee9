"""The history at the command line: what `tsctl top` begins with, and what the page may ask for."""

from typing import Any

import pytest

from tsctl.console.allowed import allowed
from tsctl.extension import PastRate
from tsctl.extensions.history import COMMAND_LINE


def test_each_version_has_its_rates_with_their_times() -> None:
    told: dict[str, Any] = {
        "every": 10,
        "models": [{"name": "m", "version": "1.0", "time": [10.0, 20.0], "requestsPerSecond": [1.0, 2.0]}],
    }

    past = COMMAND_LINE.past({"/tsctl/history": told}.__getitem__)

    assert past == {("m", "1.0"): [PastRate(10.0, 1.0), PastRate(20.0, 2.0)]}


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        pytest.param("/api/history?model=a%2F1", "/tsctl/history?model=a%2F1", id="of a version"),
        pytest.param("/api/history?file=/etc/passwd", None, id="an unknown parameter"),
        pytest.param("/api/history/a", None, id="below it"),
    ],
)
def test_the_page_may_ask_for_it(target: str, asked: str | None) -> None:
    found = allowed("GET", target)

    assert (found and found.target) == asked
