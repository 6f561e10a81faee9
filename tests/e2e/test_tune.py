"""`tsctl tune`: a model is measured beside its daemon, and served as recommended. And its batch sizes, live."""

import json
import threading

from tests.e2e.served import Served

SHORT = ("--seconds", "0.1", "--workers", "1")


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
        "tune", "linear", "--input", "input", "--clients", "8", "--slo-p99", "10000", "--apply", "--json", *SHORT
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["batchSize"] for each in found["settings"]] == [1, 8]
    now, best = found["settings"]
    assert now["p50"] >= 8 * 0.0084, "eight clients take turns"
    assert best["p50"] >= 0.0112, "or are served together"
    assert min(now["cpu"], best["cpu"]) > 0
    assert found["recommended"] == 1, "8 ms a batch and 0.4 ms a request: six times the requests a second"
    described = served.describe("linear")
    assert described["batchSize"] == 8
    assert [each["pid"] for each in described["workers"]] == [worker["pid"]], "it went on serving"
