"""`tsctl describe`: the daemon's document for programs, a screen for people."""

import json
import time
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.commands.describe import show

DESCRIBED: dict[str, Any] = {
    "modelName": "net",
    "modelVersion": "1.0",
    "modelUrl": "/store/[1]/net.mar",
    "batchSize": 8,
    "maxBatchDelay": 50,
    "minWorkers": 1,
    "responseTimeout": 120,
    "startupTimeout": 60,
    "workers": [],
    "jobQueueStatus": {"pendingRequests": 3, "remainingCapacity": 97},
    "tsctl": {
        "state": "failed",
        "workers": ["GAVE_UP"],
        "threads": {"cores": 2, "perWorker": 1, "warning": "4 workers share 2 cores"},
        "batching": {
            "policy": "fixed",
            "batchSize": 8,
            "maxBatchDelay": 2.5,
            "running": 0,
            "learned": {"batchMs": None, "requestMs": None, "guess": False},
            "arrivalsPerSecond": 0.0,
            "turnaroundMs": None,
            "regularConnections": 0,
            "openConnections": 0,
            "longestHoldMs": 0.0,
            "sizes": {},
            "reasons": {},
            "meanings": {},
            "expired": {"queue": 0, "worker": 0},
            "isolated": {"batches": 0, "requestsFailed": 0},
        },
        "lastExit": None,
        "settings": [
            {"name": "responseTimeout", "value": 0.5},
            {"name": "startupTimeout", "value": 60.0},
            {"name": "queueTimeout", "value": 0.0},
            {"name": "clientTimeoutInMills", "value": 0.0},
        ],
        "error": {"message": "ValueError: no [weights]", "traceback": "Traceback\n  line", "output": ["printed"]},
        "replacement": None,
        "retryable": True,
    },
}


# Everything that may be shown at once; `SCREEN` is what people see of it.
EVENT = {
    "sequence": 1, "time": 1_800_000_000.0, "level": "error", "kind": "worker-exited", "model": "net",
    "version": "1.0", "worker": 3, "requests": ["r1"], "text": "worker 3 ended: [killed]",
}  # fmt: skip
FAILURE = {
    "time": 1_800_000_000.0, "status": 503, "message": "ValueError: bad\nmore", "request": "r1", "requests": 3,
    "traceback": "an earlier one",
}  # fmt: skip
WHOLE: dict[str, Any] = DESCRIBED | {
    "workers": [
        {"pid": 7, "node": "gpu-1/ab12", "status": "READY", "memoryUsage": 0, "startTime": "now"},
        {"pid": 0, "status": "UNLOADING", "memoryUsage": 0, "startTime": "now"},
    ],
    "tsctl": DESCRIBED["tsctl"] | {
        "workers": ["READY", "STARTING"], "waits": "GPU is missing",
        "settings": [
            {"name": "responseTimeout", "value": 0.5}, {"name": "startupTimeout", "value": 60.0},
            {"name": "queueTimeout", "value": 2.5}, {"name": "clientTimeoutInMills", "value": 250.0},
            {"name": "maxMemory", "value": "4 GiB"}, {"name": "cpus", "value": "0-3"},
        ],
        "lastExit": "killed: it was over its memory limit of 4 GiB",
        "batching": DESCRIBED["tsctl"]["batching"] | {
            "learned": {
                "batchMs": 8.1, "requestMs": 0.4, "guess": False,
                "together": [
                    {"busy": 1, "size": 8, "ms": 130.0}, {"busy": 2, "size": 3, "ms": 80.0},
                    {"busy": 2, "size": 4, "ms": 90.0},
                ],
            },
            "arrivalsPerSecond": 12.04, "turnaroundMs": 1327.4, "regularConnections": 7, "openConnections": 9,
            "longestHoldMs": 19.87, "sizes": {"1": 90, "8": 10}, "reasons": {"delay": 1, "full": 99},
            "meanings": {"full": "there were enough", "delay": "it was held"},
            "expired": {"queue": 3, "worker": 1}, "isolated": {"batches": 3, "requestsFailed": 4},
        },
        "declared": {
            "inputs": [
                {"name": "images", "kind": "image", "annotation": "list[Image]"},
                {"name": "n", "kind": "json", "annotation": ""},
            ],
            "batches": True, "batchSize": None, "streams": False, "output": "list[dict]",
        },
        "notes": ["`handle(None)` failed."],
        "errors": [
            FAILURE, FAILURE | {"requests": 1, "traceback": "Traceback …\n  at [line] 3\nValueError: bad\n"},
        ],
        "events": [EVENT],
    },
}  # fmt: skip
SCREEN = """
model      net 1.0
state      failed
archive    /store/[1]/net.mar
batching   fixed, at most 8 requests, 2.5 ms delay
queue      3 waiting, 0 running, room for 97
threads    1 for each worker, of 2 cores (4 workers share 2 cores)
timeouts   0.5 s for a batch, 60 s for loading, 2.5 s in the queue, 250 ms for an answer
limits     4 GiB of memory for each worker, processors 0-3
takes      images: list[Image], n: json
answers    list[dict]
note       `handle(None)` failed.
waits      GPU is missing
last exit  killed: it was over its memory limit of 4 GiB
expired    3 in the queue, 1 with a worker
isolated   batches run again row by row or in halves: 3, requests that also failed alone: 4

Workers
PID  NODE        STATE     MEMORY  STARTED
  7  gpu-1/ab12  ready        0 B  now
  0  -           starting     0 B  now

Traffic
a batch takes  8.10 ms + 0.4 ms a request (learned)
workers busy   8 in 130 ms with 1, 4 in 90.0 ms with 2
arrivals       12.0 requests/s recently
connections    7 regular of 9 open
turnaround     1327 ms from an answer to the next request (median)
longest hold   19.9 ms beside an idle worker

Batches by size
1  ████████████████████████████████████████  90
8  ████                                      10

Batches by reason
 full  ████████████  99  there were enough
delay  ▏              1  it was held

Error
ValueError: no [weights]
Traceback
  line
printed

Failed predictions
2027-01-15 08:00:00 503 ValueError: bad (3 requests, the first r1)
2027-01-15 08:00:00 503 ValueError: bad (request r1)
Traceback …
  at [line] 3
ValueError: bad

Last events
2027-01-15 08:00:00 error   worker-exited       worker 3 ended: [killed] (request r1)
"""


TENSORS = {
    "inputs": [{"name": "ids", "datatype": "INT64", "shape": [-1]}, {"name": "mask", "datatype": None, "shape": None}],
    "outputs": [{"name": "best", "datatype": "FP32", "shape": [3]}],
}


def test_the_tensors_that_a_models_file_tells_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ours = DESCRIBED["tsctl"] | {"declared": None, "tensors": TENSORS}

    show(DESCRIBED | {"tsctl": ours})

    assert "takes     ids: INT64 [-1], mask -> best: FP32 [3]" in capsys.readouterr().out


def test_everything_that_may_be_shown_is_one_screen_of_text(
    invoke: Invoke, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    daemon.answer("GET /models/net", [WHOLE])

    result = invoke("describe", "net")

    assert "\n".join(line.rstrip() for line in result.stdout.splitlines()) == SCREEN.strip()
    assert result.stderr == "hint: retry with `tsctl retry net/1.0`\n"


def described(capsys: pytest.CaptureFixture[str], document: dict[str, Any]) -> list[str]:
    """Return the output for people, with single spaces."""
    from tsctl.commands.describe import show

    show(document)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_what_is_zero_or_none_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(capsys, DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"error": None}})

    assert [line.split()[0] for line in lines] == [
        "model",
        "state",
        "archive",
        "batching",
        "queue",
        "threads",
        "timeouts",
    ]
    assert lines[-1] == "timeouts 0.5 s for a batch, 60 s for loading"


def test_the_gpus_of_workers_are_shown_with_what_they_hold_there(capsys: pytest.CaptureFixture[str]) -> None:
    worker = {"pid": 7, "status": "READY", "memoryUsage": 0, "startTime": "now"}
    workers = [worker | {"gpuMemory": {"0": 2**30, "1": None}}, worker | {"pid": 8}]
    lines = described(
        capsys, DESCRIBED | {"workers": workers, "tsctl": DESCRIBED["tsctl"] | {"workers": ["READY"] * 2}}
    )

    start = lines.index("Workers")
    assert lines[start + 1 : start + 4] == [
        "PID STATE MEMORY GPU STARTED", "7 ready 0 B 0 1.0 GiB, 1 now", "8 ready 0 B - now",
    ]  # fmt: skip


def test_describe_as_json_is_the_daemons_document(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [DESCRIBED])

    result = invoke("describe", "net", "--json")

    assert json.loads(result.stdout) == [DESCRIBED]


def test_describe_asks_for_the_version_that_is_named(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net/all", [])

    result = invoke("describe", "net/all", "--json")

    assert result.stdout == "[]\n"


def with_batches(**batching: Any) -> dict[str, Any]:
    ours = DESCRIBED["tsctl"]
    batching = {"sizes": {"1": 90, "8": 10}, "reasons": {"delay": 1, "full": 99}} | batching
    return DESCRIBED | {"tsctl": ours | {"error": None, "batching": ours["batching"] | batching}}


def test_describe_says_that_a_guess_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(capsys, with_batches(learned={"batchMs": 4.0, "requestMs": 4.0, "guess": True}))

    assert "a batch takes 4.00 ms + 4.00 ms a request (a guess while all batches have the same size)" in lines


@pytest.mark.parametrize(
    ("sizes", "best", "line"),
    [
        ({1: 25.0, 8: 25.1}, 1, "1: a batch of 8 takes as long as 8 requests (learned)"),
        ({1: 22.0, 8: 42.0}, 1, "1: a batch of 8 takes as long as 15 requests (learned)"),
        ({4: 4.5, 16: 7.75}, 4, "4: 4.50 ms a request in batches of 4, 7.75 ms in batches of 16 (learned)"),
    ],
)
def test_describe_says_which_batch_size_is_best_and_why(
    capsys: pytest.CaptureFixture[str], sizes: dict[int, float], best: int, line: str
) -> None:
    costs = [{"size": size, "requestMs": cost} for size, cost in sizes.items()]
    learned = {"batchMs": 4.0, "requestMs": 4.0, "guess": False, "bestSize": best, "sizes": costs}

    assert f"best size {line}" in [" ".join(each.split()) for each in described(capsys, with_batches(learned=learned))]


def test_describe_draws_many_batch_sizes_by_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    few = {str(size): 1 for size in range(1, 17)}

    assert "16" in [line.split()[0] for line in described(capsys, with_batches(sizes=few)) if line]
    lines = described(capsys, with_batches(sizes=few | {"33": 5}))

    start = lines.index("Batches by size")
    drawn = [(line.split()[0], line.split()[-1]) for line in lines[start + 1 : start + 8]]
    assert drawn == [("1", "1"), ("2", "1"), ("3-4", "2"), ("5-8", "4"), ("9-16", "8"), ("17-32", "0"), ("33-64", "5")]


def test_one_that_cannot_be_tried_again_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"retryable": False}})

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("replacement", "line"),
    [
        pytest.param(
            {"state": "loading", "ready": 1, "wanted": 2, "error": None},
            "replacement new.mar is loading, 1 of 2 workers ready",
            id="loading",
        ),
        pytest.param(
            {"state": "failed", "ready": 0, "wanted": 0, "error": {"message": "no", "traceback": "here"}},
            "replacement new.mar failed to replace this version, see below",
            id="failed",
        ),
        pytest.param(
            {"state": "finishing", "running": 3, "queued": 4},
            "replacement new.mar was replaced, and still finishes 3 running and 4 waiting requests",
            id="finishing",
        ),
    ],
)
def test_describe_tells_of_a_replacement(
    replacement: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = DESCRIBED["tsctl"] | {"error": None, "replacement": {"url": "new.mar"} | replacement}

    lines = described(capsys, DESCRIBED | {"tsctl": ours})

    assert line in lines
    if replacement.get("error"):
        assert lines[lines.index("Error of the replacement") + 1 :] == ["no", "here"]


@pytest.mark.parametrize(
    ("recent", "shown"),
    [
        pytest.param(
            {"requests": 282, "errors": 3, "p50Ms": 210.0, "p99Ms": 1204.0},
            "282 requests, 4.70/s, p50 210 ms, p99 1204 ms, 3 errors (1.06 %)", id="all of it",
        ),
        pytest.param(
            {"requests": 1, "errors": 0, "p50Ms": None, "p99Ms": None}, "1 request, 0.017/s, 0 errors", id="one refused"
        ),
        pytest.param(
            {"requests": 0, "errors": 1, "p50Ms": None, "p99Ms": None}, "0 requests, 0/s, 1 error",
            id="an error whose client had left",
        ),
    ],
)  # fmt: skip
def test_describe_has_the_last_minute(capsys: pytest.CaptureFixture[str], recent: dict[str, Any], shown: str) -> None:
    ours = DESCRIBED["tsctl"] | {"state": "ready", "recent": recent | {"seconds": 60}, "troubles": ["2.8 % errors"]}

    lines = described(capsys, DESCRIBED | {"tsctl": ours})

    assert f"last minute {shown}" in lines
    assert "trouble 2.8 % errors" in lines


def test_describe_of_a_version_without_requests_has_no_last_minute(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = {"seconds": 60, "requests": 0, "errors": 0, "p50Ms": None, "p99Ms": None}

    lines = described(capsys, DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"recent": quiet}})

    assert not any("last minute" in line for line in lines)
