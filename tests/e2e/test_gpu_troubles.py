"""Troubles of a GPU, played by a handler that raises what torch raises there: no GPU is needed."""

import pytest

from tests.e2e.served import Answer, Served


@pytest.fixture
def played(idle: Served) -> Served:
    idle.environment["TSCTL_TEMPLATE"] = "true"  # torch is imported once
    idle.start()
    return idle


def ask(served: Served, body: bytes) -> Answer:
    return served.ask("/predictions/m", body, content_type="application/octet-stream")


@pytest.mark.thin
def test_a_worker_whose_gpu_context_is_broken_is_replaced_and_operators_see_why(played: Served) -> None:
    played.register("plays_gpu", name="m")
    first = ask(played, b"good")

    broken = ask(played, b"break")

    why = "its GPU context is broken: device-side assert triggered (CUDA error 710)"
    assert (broken.status, why in broken.json["message"]) == (500, True)
    good = ask(played, b"good")
    assert (first.status, good.status) == (200, 200)
    before, after = (answer.body.decode().split()[0] for answer in (first, good))
    assert before != after, "another process"
    described = played.describe("m")["tsctl"]
    assert (described["state"], described["lastExit"]) == ("ready", why)
    [event] = [each for each in described["events"] if each["kind"] == "worker-exited"]
    assert event["text"] == f"worker {before} ended: {why}; its requests: 1 answered with 500"
    assert "Traceback" in played.tsctl("logs", "m"), "of the handler, for its author"
