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
