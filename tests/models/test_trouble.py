"""A version is in trouble if it has failed, answers errors, lets requests pile up, or has just lost a worker."""

import pytest

from tsctl.daemon.models.reporting.trouble import TroubleFacts, troubles

NOW = 1000.0


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        pytest.param(TroubleFacts("ready"), [], id="nothing is known"),
        pytest.param(TroubleFacts("ready", 1000, 10, 50, 100, 0.5, NOW - 60.0), [], id="each is just within bounds"),
        pytest.param(TroubleFacts("failed"), ["failed"], id="no worker is started again"),
        pytest.param(TroubleFacts("crashing"), ["crashing"], id="workers end one after the other"),
        pytest.param(TroubleFacts("loading"), [], id="loading is none"),
        pytest.param(TroubleFacts("ready", 1000, 28), ["2.8 % errors"], id="more than 1 % of errors"),
        pytest.param(TroubleFacts("ready", 3, 3), ["100 % errors"], id="nothing but errors"),
        pytest.param(TroubleFacts("ready", 1000, 999), ["100 % errors"], id="almost nothing but errors"),
        pytest.param(TroubleFacts("ready", 0, 2), ["100 % errors"], id="errors whose clients have left"),
        pytest.param(TroubleFacts("ready", queued=51, room=100), ["queue 51 of 100"], id="the queue is over half full"),
        pytest.param(TroubleFacts("ready", queued=2, room=100, filled=0.8), ["queue 80 % of its bytes"], id="in bytes"),
        pytest.param(TroubleFacts("ready", queued=1, room=1), ["queue 1 of 1"], id="a queue of one"),
        pytest.param(TroubleFacts("ready", ended=NOW - 12.4), ["a worker ended 12 s ago"], id="a worker has ended"),
        pytest.param(
            TroubleFacts("crashing", 10, 5, 9, 10, 0.0, NOW - 1.0),
            ["crashing", "50 % errors", "queue 9 of 10", "a worker ended 1 s ago"], id="all of it, the worst first",
        ),
    ],
)  # fmt: skip
def test_troubles_are_told_in_a_few_words(facts: TroubleFacts, told: list[str]) -> None:
    assert troubles(facts, NOW) == told
