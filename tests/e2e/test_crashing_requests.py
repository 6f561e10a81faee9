"""Requests that end workers: whoever sends them, healthy requests are answered all along, and no version fails."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.load import repeating
from tests.e2e.served import Answer, Served, eventually

SIX = 6


def config_of(served: Served, text: str) -> Path:
    config = served.folder / "model-config.yaml"
    config.write_text(text)
    return config


def ask(served: Served, model: str, body: bytes, **headers: str) -> Answer:
    return served.ask(f"/predictions/{model}", body, content_type="application/octet-stream", **headers)


def state(served: Served, model: str) -> Any:
    return served.describe(model)["tsctl"]["state"]


@pytest.mark.parametrize(
    ("handler", "config", "size"),
    [
        pytest.param("crashes", "", 100, id="a handle of the user's"),
        pytest.param("crashes", "retry: true\n", 100, id="with retry"),
        pytest.param("crashes", "retry: true\n", 200_000, id="with bodies in the arena"),
        pytest.param("crashes_built_in", "", 200_000, id="a handle of ours"),
    ],
)
def test_six_crashing_requests_of_one_client_cost_no_other_its_answers(
    idle: Served, handler: str, config: str, size: int
) -> None:
    served = idle
    if handler == "crashes_built_in":  # it imports torch: once is enough
        served.environment["TSCTL_TEMPLATE"] = "true"
    served.start()
    served.register(handler, name="m", config_file=config_of(served, config))

    answers, pings = Counter[int](), Counter[int]()

    def healthy() -> None:
        answers[ask(served, "m", b"w" * size).status] += 1
        pings[served.ask("/ping", method="GET").status] += 1

    with repeating(healthy):
        eventually(lambda: answers[200] > 0, "healthy requests are answered")
        for number in range(SIX):  # each one another, so that none is refused
            body = b"crash %d" % number
            answer = ask(served, "m", body.ljust(size, b"."))
            assert (answer.status, "it exited with code 7" in answer.json["message"]) == (500, True)
        before = answers.total()
        eventually(lambda: answers.total() > before + 3, "they are answered afterwards, too")

    assert set(answers) == {200} and set(pings) == {200}
    assert state(served, "m") == "ready"


@pytest.mark.parametrize(
    ("config", "requests"), [("", SIX), ("retry: true\n", 2)], ids=["a handle of the user's", "with retry"]
)
def test_a_version_with_crashing_requests_only_is_crashing_and_serves_at_once_when_a_good_one_comes(
    served: Served, config: str, requests: int
) -> None:
    served.register("crashes", name="m", config_file=config_of(served, config))

    for number in range(requests):
        assert ask(served, "m", b"crash %d" % number).status == 500
        assert served.ask("/ping", method="GET").status == 200
    assert state(served, "m") == "crashing"
    listed = served.run("ls")
    assert "crashing" in listed.stdout and "`tsctl logs m`" in listed.stderr
    assert 'tsctl_model_crashing{model="m",version="1.0"} 1.0' in served.ask("/metrics", method="GET").body.decode()

    assert ask(served, "m", b"good").status == 200

    assert state(served, "m") == "ready"
    assert 'tsctl_model_crashing{model="m",version="1.0"} 0.0' in served.ask("/metrics", method="GET").body.decode()
    log = (served.folder / "state/logs/daemon.log").read_text()
    assert "m/1.0: crashing: 3 workers ended one after the other" in log and "m/1.0: no longer crashing" in log
