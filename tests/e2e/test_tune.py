"""`tsctl tune`: a model is measured beside its daemon, and served as recommended. And what `auto` makes of clients."""

import json
import threading
from collections import Counter
from pathlib import Path

from tests.e2e.served import Served, eventually

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


def sizes_of(served: Served) -> Counter[int]:
    """The batches of each size so far."""
    sizes = served.describe("linear")["tsctl"]["batching"]["sizes"]
    return Counter({int(size): count for size, count in sizes.items()})


def test_a_model_is_measured_and_then_served_as_recommended(served: Served) -> None:
    served.register("linear")
    (served.folder / "input").write_bytes(b"x")
    (worker,) = served.describe("linear")["workers"]

    done = served.run("tune", "linear", "input", "--clients", "8", "--slo-p99", "10000", "--apply", "--json", *SHORT)

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


def test_clients_come_to_travel_together(served: Served, tmp_path: Path) -> None:
    clients, config = 8, tmp_path / "model-config.yaml"
    config.write_text("perBatch: 0.15\n")  # far more than a client's next request can take to come
    served.register("linear", "--batch-size", "32", "--max-delay", "500", config_file=config)

    def travel_together() -> bool:
        before = sizes_of(served)
        drive(served, clients, requests=10)
        sizes = sizes_of(served) - before
        assert max(sizes) <= clients, "nobody sends a request before the last is answered"
        return clients * sizes[clients] >= 0.9 * sum(size * count for size, count in sizes.items())

    eventually(travel_together, lambda: f"nine of ten requests are in full batches: {sizes_of(served)}")
