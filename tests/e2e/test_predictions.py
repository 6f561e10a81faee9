"""Predictions over HTTP, as curl sends them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Answer, Served, eventually

pytestmark = pytest.mark.thin


def obey(served: Served, word: str, **headers: str) -> Answer:
    return served.predict("obey", {"do": word}, **headers)


@pytest.fixture(scope="session")
def obeying(shared: Served) -> Served:
    shared.register("obey", "--batch-size", "1")
    return shared


def test_what_a_handler_prints_goes_to_its_log_and_not_onto_the_wire(obeying: Served) -> None:
    assert obey(obeying, "print").status == 200

    eventually(lambda: "descriptor 1" in obeying.tsctl("logs", "obey"), "the log has what was printed")
    assert "printed by the handler" in obeying.tsctl("logs", "obey")


def test_a_request_that_takes_too_long_is_answered_in_time_and_the_worker_goes_on(served: Served) -> None:
    served.register("obey", "--batch-size", "1", "--queue-timeout", "0.5")
    pid = obey(served, "nothing").json["pid"]
    gate = served.folder / "gate"

    with ThreadPoolExecutor(3) as clients:
        running = clients.submit(obey, served, f"wait {gate}", x_request_deadline_ms="1000")
        eventually(lambda: served.describe("obey")["tsctl"]["batching"]["running"] == 1, "the first request runs")
        late = clients.submit(obey, served, "nothing", x_request_deadline_ms="100")
        waiting = clients.submit(obey, served, "nothing", x_request_priority="low")
        answers = [each.result() for each in (running, late, waiting)]
        gate.touch()

    assert [answer.status for answer in answers] == [504] * 3
    assert [answer.json["type"] for answer in answers] == ["RequestTimeoutException"] * 3
    assert "1 s that x-request-deadline-ms allows" in answers[0].json["message"]
    assert "100 ms that x-request-deadline-ms allows" in answers[1].json["message"]
    assert "500 ms that queueTimeout allows" in answers[2].json["message"]
    eventually(lambda: served.describe("obey")["tsctl"]["batching"]["running"] == 0, "the handler goes on")
    assert obey(served, "nothing").json["pid"] == pid
    assert served.describe("obey")["tsctl"]["batching"]["expired"] == {"queue": 2, "worker": 1}
