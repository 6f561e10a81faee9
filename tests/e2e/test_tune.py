"""`tsctl tune`: a model is measured beside its daemon, and served as recommended."""

import json

from tests.e2e.served import Served

SHORT = ("--seconds", "0.1", "--workers", "1")


def test_a_model_is_measured_and_then_served_as_recommended(served: Served) -> None:
    served.register("linear")
    (served.folder / "input").write_bytes(b"x")
    workers = served.pids("linear")

    done = served.run("tune", "linear", "input", "--clients", "8", "--slo-p99", "10000", "--apply", "--json", *SHORT)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["batchSize"] for each in found["settings"]] == [1, 8]
    now, best = found["settings"]
    assert now["p50"] >= 8 * 0.0084, "eight clients take turns"
    assert best["p50"] >= 0.0112, "or are served together"
    assert min(now["cpu"], best["cpu"]) > 0
    assert found["recommended"] == 1, "8 ms a batch and 0.4 ms a request: six times the requests a second"
    assert served.describe("linear")["batchSize"] == 8
    assert served.pids("linear") == workers, "it went on serving"
