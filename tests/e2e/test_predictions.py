"""Predictions over HTTP, as curl sends them."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Answer, Served, eventually

pytestmark = pytest.mark.thin

OBEY = "/predictions/obey"


def obey(served: Served, word: str) -> Answer:
    return served.ask(OBEY, json.dumps({"do": word}).encode(), content_type="application/json")


@pytest.fixture(scope="session")
def obeying(shared: Served) -> Served:
    shared.register("obey", "--batch-size", "1")
    return shared


@pytest.mark.parametrize(
    ("options", "row"),
    [
        pytest.param(["-T", "image.bin"], {"body": "pixels"}, id="a file"),
        pytest.param(
            ["-T", "image.bin", "-H", "Expect: 100-continue"], {"body": "pixels"}, id="a file it is asked for"
        ),
        pytest.param(
            ["-T", "image.bin", "-H", "Transfer-Encoding: chunked"], {"body": "pixels"}, id="a file in chunks"
        ),
        pytest.param(["-F", "data=@image.bin", "-F", "k=v"], {"data": "pixels", "k": "v"}, id="a form"),
    ],
)
def test_curl_uploads(shared: Served, tmp_path: Path, options: list[str], row: dict[str, str]) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("needs the Debian program curl")
    (tmp_path / "image.bin").write_bytes(b"pixels")

    done = subprocess.run(
        [curl, "-sS", f"{shared.url}/predictions/echo", *options], cwd=tmp_path, capture_output=True, timeout=PATIENCE
    )

    assert json.loads(done.stdout)["row"] == {name: {"bytearray": text} for name, text in row.items()}


def test_what_a_handler_prints_goes_to_its_log_and_not_onto_the_wire(obeying: Served) -> None:
    assert obey(obeying, "print").status == 200

    eventually(lambda: "descriptor 1" in obeying.tsctl("logs", "obey"), "the log has what was printed")
    assert "printed by the handler" in obeying.tsctl("logs", "obey")


def test_a_request_that_takes_too_long_is_answered_in_time_and_the_worker_goes_on(served: Served) -> None:
    served.register("obey", "--batch-size", "1", "--queue-timeout", "0.5")
    pid = obey(served, "nothing").json["pid"]
    gate = served.folder / "gate"
    wait, nothing = (json.dumps({"do": word}).encode() for word in (f"wait {gate}", "nothing"))
    kind = "application/json"

    with ThreadPoolExecutor(3) as clients:
        running = clients.submit(served.ask, OBEY, wait, content_type=kind, x_request_deadline_ms="1000")
        eventually(lambda: served.describe("obey")["tsctl"]["batching"]["running"] == 1, "the first request runs")
        late = clients.submit(served.ask, OBEY, nothing, content_type=kind, x_request_deadline_ms="100")
        waiting = clients.submit(served.ask, OBEY, nothing, content_type=kind, x_request_priority="low")
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


def test_a_client_that_leaves_takes_its_queued_request_with_it(obeying: Served, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    running, ahead, leaving = obeying.connect(), obeying.connect(), obeying.connect()
    headers = {"Content-Type": "application/json"}
    running.request("POST", OBEY, json.dumps({"do": f"wait {gate}"}), headers)
    eventually(lambda: obeying.describe("obey")["tsctl"]["batching"]["running"] == 1, "the first request runs")
    ahead.request("POST", OBEY, json.dumps({"do": "nothing"}), headers)
    eventually(
        lambda: obeying.describe("obey")["jobQueueStatus"]["pendingRequests"] == 1, "the second one is sent ahead"
    )
    leaving.request("POST", OBEY, json.dumps({"do": "nothing"}), headers)
    eventually(lambda: obeying.describe("obey")["jobQueueStatus"]["pendingRequests"] == 2, "the third one waits")
    sent = sum(obeying.describe("obey")["tsctl"]["batching"]["sizes"].values())

    leaving.close()

    eventually(lambda: obeying.describe("obey")["jobQueueStatus"]["pendingRequests"] < 2, "it is taken out")
    gate.touch()
    for connection in (running, ahead):
        assert connection.getresponse().status == 200
        connection.close()
    assert sum(obeying.describe("obey")["tsctl"]["batching"]["sizes"].values()) == sent
