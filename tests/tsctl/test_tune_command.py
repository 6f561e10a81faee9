"""`tsctl tune`, with a process that only says what the measuring would."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.tuning import saved

SETTINGS = {"batchSize": 1, "maxBatchDelay": 100.0, "batching": "auto", "startupTimeout": 60, "responseTimeout": 60}
TRACE = {
    "modelName": "net", "modelVersion": "1.0", "times": [0.0, 1.0], "silence": 9.0, "workers": 1, "settings": SETTINGS,
}  # fmt: skip
WORKER = {"directory": "/nowhere", "handler": "base_handler", "regulars": [0, 0], "turnarounds": []}
CONFIG = [
    {"name": "envelope", "value": "json", "origin": "flag"},
    {"name": "decode_input", "value": False, "origin": "default"},
    {"name": "limit_image_pixels", "value": False, "origin": "environment"},
    {"name": "hide_environment", "value": None, "origin": "default"},
    {"name": "metrics_config", "value": None, "origin": "default"},
]


def point(**changes: Any) -> dict[str, Any]:
    values = {
        "workers": 1, "threads": 2, "batchSize": 8, "maxBatchDelay": 20.0, "batching": "auto", "capacity": 720.0,
        "throughput": 660.0, "p50": 0.0113, "p99": 0.0127, "meanBatch": 7.9, "keepsUp": True, "measured": False,
    }  # fmt: skip
    return values | changes


NOW = point(batchSize=1, maxBatchDelay=100.0, capacity=119.0, throughput=115.0, p50=0.0692, p99=0.0701)
LARGER = point(workers=2, threads=1, batchSize=32, capacity=3030.0, p99=0.0211)
MEASURED = {
    "stage": "measured", "workers": 1, "threads": 2,
    "curves": [{
        "busy": 1, "a": 0.008, "c": 0.0004, "residual": 0.02, "sizes": [1, 8, 32], "medians": [0.0084, 0.0112, 0.0208],
    }],
    "beside": {"batches": 1.17, "requests": 1.4},
}  # fmt: skip
DONE = {
    "stage": "done",
    "load": {"text": "recorded: 8 clients that wait for an answer", "clients": 8, "requestsPerSecond": None},
    "way": {"latency": 0.0002, "cost": 0.00005},
    "now": NOW,
    "frontier": [LARGER, point(measured=True)],
    "recommended": 1,
    "rule": "the highest capacity of the settings whose p99 is within 5% of the least",
    "tried": 112,
}
WORKING = ({"stage": "loading", "workers": 1, "threads": 2, "done": 0, "total": 3}, MEASURED)

# Keeps what it was asked in a file, and says what it is told to.
FAKE = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read()); print(sys.argv[2])"


@pytest.fixture
def order(tmp_path: Path, daemon: FakeDaemon) -> Path:
    """A daemon that serves the model `net`; give the file with what the measuring was asked."""
    daemon.answer("GET /tsctl/trace/net", TRACE)
    daemon.answer("GET /tsctl/worker/net", WORKER)
    state = {"name": "state_dir", "value": str(tmp_path / "kept"), "origin": "flag"}
    daemon.answer("GET /tsctl/config", [*CONFIG, state])
    daemon.answer_body("GET /tsctl/input/net", b"recorded", "text/plain")
    daemon.answer("PATCH /models/net", {"changes": []})
    daemon.answer("PUT /models/net", {"status": "ok"})
    return tmp_path / "order"


@pytest.fixture
def measuring(order: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the measuring process by one that prints given events."""

    def say(*events: dict[str, Any]) -> None:
        lines = "\n".join(json.dumps(event) for event in events)
        monkeypatch.setattr("tsctl.tuning.process.TUNE", (sys.executable, "-c", FAKE, str(order), lines))

    say(*WORKING, DONE)
    return say


def test_what_was_measured_and_what_is_recommended_is_shown(invoke: Invoke, measuring: Any) -> None:
    done = invoke("tune", "net")

    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        "load recorded: 8 clients that wait for an answer",
        "1 × 2 8.40 11.2 20.8 +17% 8.00 + 0.4 n, within 2%",
        "1 2 × 1 32 20 auto 3030 660 11.3 21.1",
        "2 1 × 2 8 20 auto 720 660 11.3 12.7 measured",
        "now 1 × 2 1 100 auto 119 115 69.2 70.1",
        "Recommended: 2",
        "the highest capacity of the settings whose p99 is within 5% of the least",
        "tsctl set net --batch-size 8 --max-delay 20 --batching auto",
    ):
        assert line in lines
    assert "tsctl scale" not in done.stdout


def test_the_verdict_comes_last_and_is_whole_in_itself(invoke: Invoke, measuring: Any) -> None:
    lines = invoke("tune", "net").stdout.splitlines()

    assert lines[lines.index("Recommended: 2") :] == [
        "Recommended: 2",
        "  the highest capacity of the settings whose p99 is within 5% of the least",
        "  batch size 8, delay at most 20 ms, auto, 1 worker × 2 threads",
        "  p99 12.7 ms, capacity 720 requests a second",
        "  now: p99 70.1 ms, capacity 119 requests a second",
        "  tsctl set net --batch-size 8 --max-delay 20 --batching auto",
    ]


def test_the_measuring_is_told_all_it_needs(invoke: Invoke, measuring: Any, order: Path) -> None:
    invoke(
        "tune", "net", "--slo-p99", "50", "--max-batch-size", "16", "--workers", "1", "--workers", "2", "--rate", "9.5"
    )

    line, _, body = order.read_bytes().partition(b"\n")
    assert json.loads(line) == {
        "trace": TRACE, "worker": WORKER, "settings": {"envelope": "json", "limit_image_pixels": "false"},
        "contentType": "text/plain", "most": 16, "workers": [1, 2], "clients": None, "rate": 9.5, "seconds": 1.0,
        "slo": 0.05,
    }  # fmt: skip
    assert body == b"recorded"


def test_a_file_may_be_the_input(invoke: Invoke, measuring: Any, order: Path, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text("{}")

    invoke("tune", "net", "--input", tmp_path / "input.json")

    line, _, body = order.read_bytes().partition(b"\n")
    assert (json.loads(line)["contentType"], body) == ("application/json", b"{}")


def test_without_any_input_the_daemon_says_what_to_do(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/input/net", {"message": "No sample input for net/1.0. Name a file."}, status=404)

    done = invoke("tune", "net")

    assert done.exit_code == 1
    assert "error: No sample input for net/1.0. Name a file." in done.stderr


def test_json_is_all_that_was_found(invoke: Invoke, measuring: Any) -> None:
    document = json.loads(invoke("tune", "net", "--json").stdout)

    assert (document["model"], document["frontier"], document["now"]) == ("net", DONE["frontier"], NOW)
    assert document["batchTimes"][0]["curves"] == MEASURED["curves"]
    assert document["commands"] == ["tsctl set net --batch-size 8 --max-delay 20 --batching auto"]


def test_the_result_is_kept_for_the_page_and_for_its_owner_alone(
    invoke: Invoke, measuring: Any, tmp_path: Path
) -> None:
    document = json.loads(invoke("tune", "net", "--json").stdout)
    (file,) = (tmp_path / "kept" / "tuned").iterdir()

    assert (file.name, file.stat().st_mode & 0o777) == ("net@1.0.json", 0o600)
    (kept,) = saved.saved(tmp_path / "kept")
    assert abs(kept.pop("time") - time.time()) < 60
    assert kept == document
    invoke("tune", "net")
    assert list((tmp_path / "kept" / "tuned").iterdir()) == [file]


def test_a_result_that_cannot_be_kept_is_still_shown(invoke: Invoke, measuring: Any, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")

    done = invoke("tune", "net")

    assert done.exit_code == 0
    assert "Recommended: 2" in done.stdout
    assert "note: `tsctl console` cannot show this result, as it could not be saved: " in done.stderr


def test_files_that_are_no_results_are_left_out(tmp_path: Path) -> None:
    directory = saved.save(tmp_path, {"model": "a", "version": "1", "time": 5.0}).parent
    saved.save(tmp_path, {"model": "b", "version": "1", "time": 6.0})
    for name, text in {"c@1.json": "{", "d@1.json": "[]", "e@1.json": "{}", ".x@1.json": '{"time": 1}'}.items():
        (directory / name).write_text(text)
    (directory / "f@1.json").write_text(" " * saved.LARGEST + "{}")
    (directory / "g@1.json").mkdir()

    assert [each["model"] for each in saved.saved(tmp_path)] == ["b", "a"]
    assert saved.saved(tmp_path / "nothing") == []


def test_applying_changes_the_settings(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    done = invoke("tune", "net", "--apply")

    (change,) = [request for request in daemon.requests if request.method != "GET"]
    assert (change.method, change.path) == ("PATCH", "/models/net")
    assert change.query == {"batch_size": "8", "max_batch_delay": "20.0", "batching": "auto"}
    assert "Serving `net` 1.0 with batch size 8, delay 20 ms, auto, 1 worker\n" in done.stderr


def test_applying_scales_where_the_number_of_workers_differs(
    invoke: Invoke, measuring: Any, daemon: FakeDaemon
) -> None:
    measuring(*WORKING, DONE | {"recommended": 0})

    done = invoke("tune", "net", "--apply")

    last = daemon.requests[-1]
    assert (last.method, last.path, last.query["min_worker"]) == ("PUT", "/models/net", "2")
    assert "tsctl scale net --workers 2" in done.stdout


def test_what_is_served_so_already_needs_no_command(invoke: Invoke, measuring: Any) -> None:
    measuring(*WORKING, DONE | {"frontier": [NOW], "recommended": 0})

    assert "the model is already served with these settings" in invoke("tune", "net").stdout


@pytest.mark.parametrize(
    ("found", "options", "message"),
    [
        pytest.param(
            {"recommended": None}, ["--slo-p99", "5"],
            "error: no setting answers 99 % of these requests within 5 ms; the lowest p99 is 12.7 ms", id="too slow",
        ),
        pytest.param(
            {"recommended": None, "frontier": [point(keepsUp=False)]}, [], "error: no setting keeps up with this load",
            id="falls behind",
        ),
    ],
)  # fmt: skip
def test_where_no_setting_will_do_nothing_is_applied(
    invoke: Invoke, measuring: Any, daemon: FakeDaemon, found: dict[str, Any], options: list[str], message: str
) -> None:
    measuring(*WORKING, DONE | found)

    done = invoke("tune", "net", "--apply", *options)

    assert done.exit_code == 1
    assert message in done.stderr
    assert {request.method for request in daemon.requests} == {"GET"}


def test_a_model_that_cannot_answer_the_input_says_so(invoke: Invoke, measuring: Any) -> None:
    message = "the model cannot answer the request: Prediction failed: ValueError: as you wish"
    measuring({"stage": "failed", "message": message, "details": "Traceback …"})

    done = invoke("tune", "net")

    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error: {message}" in done.stderr
    assert "Traceback …" in done.stderr


def test_a_load_is_assumed_in_one_way_only(invoke: Invoke, measuring: Any) -> None:
    done = invoke("tune", "net", "--clients", "3", "--rate", "5")

    assert done.exit_code == 2
    assert "`--clients` and `--rate` are two kinds of load" in done.stderr
