"""Batches that do not fit into memory on a real daemon, played by a handler that raises what torch raises then."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Served

SIZE = 8


@pytest.fixture
def played(idle: Served) -> Served:
    idle.environment["TSCTL_TEMPLATE"] = "true"  # torch is imported once
    idle.start()
    return idle


def sizes(served: Served) -> Counter[int]:
    """Send eight requests at once; return how many ran in a batch of which size, all answered 200."""
    with ThreadPoolExecutor(SIZE) as clients:
        answers = list(
            clients.map(
                lambda _: served.ask("/predictions/m", b"x", content_type="application/octet-stream"), range(SIZE)
            )
        )
    assert {answer.status for answer in answers} == {200}, [answer.body for answer in answers]
    return Counter(int(answer.body.split()[1]) for answer in answers)


@pytest.mark.thin
def test_where_batches_of_four_fit_and_of_eight_do_not_all_are_answered_and_no_other_eight_is_sent(
    played: Served,
) -> None:
    # A batch waits until it is full, however slow the clients are.
    config = "room: 4\nisolate: true\nbatchSize: 8\nmaxBatchDelay: 60000\nbatching: fixed\n"
    played.register("plays_gpu", name="m", config=config)

    assert sizes(played) == {4: SIZE}, "in halves"
    assert sizes(played) == {4: SIZE}

    batching = played.describe("m")["tsctl"]["batching"]
    assert batching["sizes"] == {"4": 2, "8": 1}
    assert (batching["cap"]["most"], batching["cap"]["tooLarge"]) == (4, 8)
    [event] = [each for each in played.describe("m")["tsctl"]["events"] if each["kind"] == "batch-capped"]
    assert event["text"].startswith("a batch of 8 requests did not fit into memory: at most 4 from now on")
    assert "at most 4 requests: 8 did not fit into memory" in " ".join(played.tsctl("describe", "m").split())
