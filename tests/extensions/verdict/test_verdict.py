"""The sentence on a version: each kind, its command, and silence where nothing is known."""

from collections.abc import Callable

import pytest

from tsctl.daemon.extensions.verdict.verdict import VerdictFacts, verdict

CORES = "3 workers share 2 cores and slow each other down; at most 2 would be faster"
BUSY = VerdictFacts("slow", requests=280, rate=4.7, capacity=3.3)


def room_for(most: int) -> Callable[[int], str | None]:
    return lambda workers: CORES if workers > most else None


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        pytest.param(
            BUSY, "4.7 requests/s come, one worker can do 3.3: `tsctl scale slow 2`", id="one worker more"
        ),
        pytest.param(
            BUSY._replace(rate=33.0, ready=2, wanted=2),
            "33 requests/s come, 2 workers can do 6.6: `tsctl scale slow 12`", id="as many as keep up",
        ),
        pytest.param(
            BUSY._replace(rate=3.0), "3 requests/s come, one worker can do 3.3: `tsctl scale slow 2`",
            id="clients that wait for their answers never overload a worker by much",
        ),
        pytest.param(
            BUSY._replace(model="slow/2.0"),
            "4.7 requests/s come, one worker can do 3.3: `tsctl scale slow/2.0 2`", id="of a version",
        ),
        pytest.param(
            BUSY._replace(model="it's"),
            """4.7 requests/s come, one worker can do 3.3: `tsctl scale 'it'"'"'s' 2`""",
            id="a shell reads it",
        ),
        pytest.param(
            BUSY._replace(rate=9.0, ready=2, wanted=2, shortage=room_for(2)),
            f"9 requests/s come, 2 workers can do 6.6, and {CORES}: `tsctl tune slow` looks for a faster setting",
            id="no room for more",
        ),
        pytest.param(
            BUSY._replace(rate=9.0, ready=1, wanted=3),
            "9 requests/s come, one worker can do 3.3, and only 1 of 3 workers is ready: `tsctl logs slow` says why",
            id="some are not there yet",
        ),
        pytest.param(
            BUSY._replace(rate=9.0, ready=0, wanted=2),
            "9 requests/s come, one worker can do 3.3, and only 0 of 2 workers are ready: `tsctl logs slow` says why",
            id="none is there",
        ),
        pytest.param(
            BUSY._replace(errors=200, requests=280),
            "4.7 requests/s come, one worker can do 3.3: `tsctl scale slow 2`",
            id="overload comes before the errors that it makes",
        ),
        pytest.param(
            BUSY._replace(rate=1.0, requests=60, errors=2),
            "2 of 60 requests failed: the reasons are below, and `tsctl logs slow` has the output", id="errors",
        ),
        pytest.param(
            VerdictFacts("slow", errors=1),
            "1 of 1 requests failed: the reasons are below, and `tsctl logs slow` has the output",
            id="an error whose client had left",
        ),
        pytest.param(
            BUSY._replace(crashing=True),
            "its workers end one after the other: `tsctl logs slow` has their last words", id="crashes",
        ),
        pytest.param(
            BUSY._replace(rate=1.0, ready=2, wanted=2), "1 request/s comes, 2 workers can do 6.6", id="they keep up"
        ),
        pytest.param(BUSY._replace(rate=0.004, requests=1), "0.004 requests/s come, one worker can do 3.3", id="rare"),
        pytest.param(BUSY._replace(rate=0.0, requests=0), "", id="nothing came"),
        pytest.param(BUSY._replace(capacity=None), "", id="no batch was measured"),
        pytest.param(
            BUSY._replace(rate=1.0, requests=100, errors=1), "1 request/s comes, one worker can do 3.3", id="one in 100"
        ),
        pytest.param(BUSY._replace(ready=0, wanted=0), "", id="no worker is wanted"),
    ],
)  # fmt: skip
def test_the_verdict(facts: VerdictFacts, sentence: str) -> None:
    assert verdict(facts) == sentence
