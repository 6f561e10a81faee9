"""Which traffic is replayed."""

from typing import Any

import pytest

from daemon.tools.tune.load import NoLoad, plan_load

BATCHING = {"learned": {"batchMs": 8.0, "requestMs": 0.5}, "sizes": {"1": 10, "8": 10}}
SOON, LATE = [(0.001, 0.002, 0.5), (0.002, 0.003, 0.5)], [(0.1, 0.2, 1.0)]


def recorded(requests: int = 300, regulars: int = 0, turnarounds: Any = SOON, **batching: Any) -> tuple[Any, Any]:
    """Make the daemon's documents of a trace with a request every 10 ms."""
    trace = {"times": [index / 100 for index in range(requests)], "batching": BATCHING | batching}
    return trace, {"regulars": [regulars] * requests, "turnarounds": turnarounds}


def test_clients_that_come_back_sooner_than_a_batch_takes_are_replayed_as_clients() -> None:
    plan = plan_load(*recorded(regulars=8), None, None)

    assert (plan.clients, plan.offered) == (8, None)
    assert plan.turnarounds is not None
    assert plan.text == "recorded: 8 clients that wait for an answer, and send the next request 2 ms later"


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(recorded(regulars=0), id="each on a new connection"),
        pytest.param(recorded(regulars=8, turnarounds=LATE), id="long after the answer"),
        pytest.param(recorded(regulars=8, turnarounds=[]), id="nothing learned of clients"),
        pytest.param(recorded(regulars=8, learned={"batchMs": None}), id="nothing learned of batches"),
    ],
)
def test_other_requests_are_replayed_at_the_moments_they_came(documents: tuple[Any, Any]) -> None:
    plan = plan_load(*documents, None, None)

    assert (plan.clients, plan.times) == (0, documents[0]["times"])
    assert plan.offered == pytest.approx(100)
    assert plan.text == "recorded: 300 requests in 3 s, 100 a second"


def test_too_few_requests_cannot_be_replayed() -> None:
    with pytest.raises(NoLoad, match=r"only 3 requests have been recorded, and 200 are needed .*--clients N"):
        plan_load(*recorded(3), None, None)


def test_what_is_asked_for_wins_over_what_was_recorded() -> None:
    assert plan_load(*recorded(regulars=8), 4, None).clients == 4
    assert plan_load(*recorded(3), None, 50.0).offered == 50.0


def test_assumed_clients_come_back_as_recorded_ones_do_or_at_once() -> None:
    learned, unknown = plan_load(*recorded(), 4, None), plan_load(*recorded(turnarounds=[]), 1, None)

    assert learned.text == "assumed: 4 clients that wait for an answer, and send the next request 2 ms later"
    assert unknown.text == "assumed: 1 client that waits for an answer, and sends the next request at once"
