"""One request of a batch is the fault of what happens to it: the others are answered."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Answer, Served

EIGHT = ("a", "b", "c", "bad", "e", "f", "g", "h")


def ask_at_once(served: Served, words: Sequence[str]) -> list[Answer]:
    """Send requests that come to wait for each other."""
    with ThreadPoolExecutor(len(words)) as clients:
        return list(clients.map(lambda word: served.ask("/predictions/spells", word.encode()), words))


@pytest.mark.thin
def test_of_eight_requests_in_a_batch_only_the_one_fails_for_which_the_handler_raises(served: Served) -> None:
    served.register("spells", "--batch-size", "8", "--batching", "fixed", "--max-delay", "60000")

    answers = ask_at_once(served, EIGHT)

    assert [answer.status for answer in answers] == [200, 200, 200, 503, 200, 200, 200, 200]
    assert [answer.body for answer in answers if answer.status == 200] == [
        f"{word} of 1".encode() for word in EIGHT if word != "bad"
    ]
    message = answers[3].json["message"]
    assert message.startswith("Prediction failed: ValueError: there is no such word (Request ")
    batching = served.describe("spells")["tsctl"]["batching"]
    assert batching["sizes"] == {"8": 1}
    assert batching["isolated"] == {"batches": 1, "requestsFailed": 1}
    metrics = served.ask("/metrics", method="GET").body.decode()
    assert 'tsctl_isolated_batches_total{model="spells",version="1.0"} 1.0' in metrics
    assert 'tsctl_isolated_failures_total{model="spells",version="1.0"} 1.0' in metrics


def test_where_it_is_forbidden_the_batch_fails_whole(served: Served) -> None:
    config = served.folder / "model-config.yaml"
    config.write_text("isolate: false\n")
    served.register("spells", "--batch-size", "2", "--batching", "fixed", "--max-delay", "60000", config_file=config)

    answers = ask_at_once(served, ("a", "bad"))

    assert [answer.status for answer in answers] == [503, 503]
    assert served.describe("spells")["tsctl"]["batching"]["isolated"] == {"batches": 0, "requestsFailed": 0}


def test_of_a_batch_that_hangs_only_the_request_fails_that_hangs_alone(served: Served) -> None:
    options = ("--batch-size", "2", "--batching", "fixed", "--max-delay", "60000", "--response-timeout", "1")
    served.register("spells", *options, "--workers", "2")

    answers = ask_at_once(served, ("a", "hang"))

    assert [answer.status for answer in answers] == [200, 500]
    assert answers[0].body == b"a of 1"
    assert "response timeout of 1 s" in answers[1].json["message"]
    assert served.describe("spells")["tsctl"]["batching"]["reasons"] == {"full": 1, "retry": 2}
