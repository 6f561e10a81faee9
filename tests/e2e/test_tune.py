"""`tsctl tune`: a model is measured in throw-away workers, and served as recommended. And its batch sizes, live."""

import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.served import Served

LONG = 300.0  # seconds of patience: simulating takes what processor it gets
SHORT = ("--seconds", "0.05", "--max-batch-size", "4", "--workers", "1")


def drive(served: Served, clients: int, requests: int) -> None:
    """So many clients in a closed loop over connections that stay."""
    ready = threading.Barrier(clients)

    def client() -> None:
        connection = served.connect()
        ready.wait()
        for _ in range(requests):
            connection.request("POST", "/predictions/linear", b"x")
            assert connection.getresponse().read() == b"done"
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_model_is_measured_and_then_served_as_recommended(served: Served) -> None:
    served.register("linear")
    (served.folder / "input").write_bytes(b"x")
    (worker,) = served.describe("linear")["workers"]

    done = served.run(
        "tune", "linear", "--input", "input", "--clients", "4", "--slo-p99", "10000", "--apply", "--json", *SHORT,
        patience=LONG,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ((curve,),) = (times["curves"] for times in found["batchTimes"])
    assert curve["sizes"] == [1, 2, 4]
    assert curve["medians"][0] >= 0.0084
    assert curve["medians"][2] >= 0.0096
    best = found["frontier"][found["recommended"]]
    assert best["batchSize"] == 4, "four clients that wait for each other are served together"
    assert best["measured"], "it was tried on the real model"
    assert best["p50"] >= 0.0096
    described = served.describe("linear")
    assert described["batchSize"] == 4
    assert [each["pid"] for each in described["workers"]] == [worker["pid"]], "it went on serving"


def test_the_recorded_requests_are_replayed_with_the_recorded_input(served: Served, tmp_path: Path) -> None:
    config = tmp_path / "model-config.yaml"
    config.write_text("perBatch: 0.05\n")  # clients are known by their next requests, which take less than a batch
    served.register("linear", "--batch-size", "4", config_file=config)
    served.tsctl("set", "linear", "--record-input")
    drive(served, clients=4, requests=55)

    done = served.run("tune", "linear", *SHORT, patience=LONG)

    assert done.returncode == 0, done.stderr
    assert "measured with 1 B of the daemon's input" in done.stdout
    assert "recorded: 4 clients that wait for an answer, and send the next request" in done.stdout
    assert "Recommended: " in done.stdout


def test_a_handler_that_fails_on_the_input_says_so(served: Served) -> None:
    served.register("linear")
    (served.folder / "input").write_bytes(b"fail")

    done = served.run("tune", "linear", "--input", "input", "--clients", "4", *SHORT)

    assert (done.returncode, done.stdout) == (1, "")
    message = "error: the model cannot answer the request: Prediction failed: ValueError: as you wish"
    assert message in done.stderr


def test_too_few_requests_to_replay_are_refused_before_anything_is_measured(served: Served) -> None:
    served.register("linear")
    (served.folder / "input").write_bytes(b"x")

    done = served.run("tune", "linear", "--input", "input")

    assert done.returncode == 1
    assert "error: only 0 requests have been recorded, and 200 are needed to replay them" in done.stderr


@pytest.mark.parametrize("clients", [1, 2, 8])
def test_clients_travel_together_as_in_the_simulator(served: Served, tmp_path: Path, clients: int) -> None:
    config = tmp_path / "model-config.yaml"
    config.write_text("perBatch: 0.15\n")  # far more than a client's next request can take to come
    served.register("linear", "--batch-size", "32", "--max-delay", "500", config_file=config)
    drive(served, clients, requests=15)  # it learns
    before = _sizes(served)

    drive(served, clients, requests=20)

    sizes = _sizes(served) - before
    assert max(sizes) <= clients, "nobody sends a request before the last is answered"
    assert clients * sizes[clients] >= 0.9 * sum(size * count for size, count in sizes.items()), sizes


def _sizes(served: Served) -> Counter[int]:
    sizes = served.describe("linear")["tsctl"]["batching"]["sizes"]
    return Counter({int(size): count for size, count in sizes.items()})
