"""Requests that end workers: whoever sends them, healthy requests are answered all along, and no version fails."""

from collections import Counter
from typing import Any

import pytest

from tests.e2e.load import repeating
from tests.e2e.served import Answer, Served, eventually


def ask(served: Served, body: bytes) -> Answer:
    return served.ask("/predictions/m", body, content_type="application/octet-stream")


def state(served: Served) -> Any:
    return served.describe("m")["tsctl"]["state"]


@pytest.mark.parametrize(
    ("config", "size"),
    [
        pytest.param("", 100, id="a handle of the user's"),
        pytest.param("retry: true\n", 200_000, id="with retry, and bodies in the arena"),
    ],
)
def test_six_crashing_requests_of_one_client_cost_no_other_its_answers(served: Served, config: str, size: int) -> None:
    served.register("crashes", name="m", config=config)
    answers, pings = Counter[int](), Counter[int]()

    def healthy() -> None:
        answers[ask(served, b"w" * size).status] += 1
        pings[served.ask("/ping", method="GET").status] += 1

    with repeating(healthy):
        eventually(lambda: answers[200] > 0, "healthy requests are answered")
        for number in range(6):  # each one another, so that none is refused
            body = b"crash %d" % number
            answer = ask(served, body.ljust(size, b"."))
            assert (answer.status, "it exited with code 7" in answer.json["message"]) == (500, True)
        before = answers.total()
        eventually(lambda: answers.total() > before + 3, "they are answered afterwards, too")

    assert set(answers) == {200} and set(pings) == {200}
    assert state(served) == "ready"


def test_a_version_with_crashing_requests_only_is_crashing_and_serves_at_once_when_a_good_one_comes(
    served: Served,
) -> None:
    served.register("crashes", name="m", config="retry: true\n")

    for number in range(2):  # each ends two workers
        assert ask(served, b"crash %d" % number).status == 500
        assert served.ask("/ping", method="GET").status == 200
    assert state(served) == "crashing"
    listed = served.run("ls")
    assert "crashing" in listed.stdout and "`tsctl events m`" in listed.stderr

    assert ask(served, b"good").status == 200

    assert state(served) == "ready"
    log = served.log()
    assert "m/1.0: crashing: 3 workers ended one after the other" in log and "m/1.0: no longer crashing" in log
