"""A version is in trouble if it has failed, answers errors, lets requests pile up, or has just lost a worker."""

from typing import Any

import pytest

from tsctl.daemon.models.reporting.trouble import troubles

NOW = 1000.0


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        pytest.param({"state": "ready"}, [], id="nothing is known"),
        pytest.param(
            {
                "state": "ready",
                "requests": 1000,
                "errors": 10,
                "queued": 50,
                "room": 100,
                "filled": 0.5,
                "ended": NOW - 60.0,
            },
            [],
            id="each is just within bounds",
        ),
        pytest.param({"state": "failed"}, ["failed"], id="no worker is started again"),
        pytest.param({"state": "crashing"}, ["crashing"], id="workers end one after the other"),
        pytest.param({"state": "loading"}, [], id="loading is none"),
        pytest.param(
            {"state": "ready", "requests": 1000, "errors": 28}, ["2.8 % errors"], id="more than 1 % of errors"
        ),
        pytest.param({"state": "ready", "requests": 3, "errors": 3}, ["100 % errors"], id="nothing but errors"),
        pytest.param(
            {"state": "ready", "requests": 1000, "errors": 999}, ["100 % errors"], id="almost nothing but errors"
        ),
        pytest.param(
            {"state": "ready", "requests": 0, "errors": 2}, ["100 % errors"], id="errors whose clients have left"
        ),
        pytest.param(
            {"state": "ready", "queued": 51, "room": 100}, ["queue 51 of 100"], id="the queue is over half full"
        ),
        pytest.param(
            {"state": "ready", "queued": 2, "room": 100, "filled": 0.8}, ["queue 80 % of its bytes"], id="in bytes"
        ),
        pytest.param({"state": "ready", "queued": 1, "room": 1}, ["queue 1 of 1"], id="a queue of one"),
        pytest.param({"state": "ready", "ended": NOW - 12.4}, ["a worker ended 12 s ago"], id="a worker has ended"),
        pytest.param(
            {
                "state": "crashing",
                "requests": 10,
                "errors": 5,
                "queued": 9,
                "room": 10,
                "filled": 0.0,
                "ended": NOW - 1.0,
            },
            ["crashing", "50 % errors", "queue 9 of 10", "a worker ended 1 s ago"],
            id="all of it, the worst first",
        ),
    ],
)
def test_troubles_are_told_in_a_few_words(facts: dict[str, Any], told: list[str]) -> None:
    assert troubles(NOW, **facts) == told
