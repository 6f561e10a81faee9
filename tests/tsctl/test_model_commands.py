"""The verbs that tell the daemon what to serve, and show what it serves."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon


def model(name: str, version: str, *, default: bool = True, state: str = "ready") -> dict[str, Any]:
    """Make one of the models of `GET /tsctl/status`."""
    return {
        "name": name,
        "version": version,
        "default": default,
        "state": state,
        "ready": 1,
        "wanted": 2,
        "batchSize": 8,
        "maxBatchDelay": 50,
        "policy": "fixed",
        "arrivalsPerSecond": 12.34,
        "queued": 3,
        "running": 4,
    }


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
        "optimize": [
            {"name": "fold", "applied": True, "drift": 2.5e-7, "seconds": 0.123},
            {"name": "bf16", "applied": False, "drift": None, "seconds": 0.5, "reason": "the model fails"},
        ],
        "error": {"message": "ValueError: no [weights]", "traceback": "Traceback\n  line", "output": ["printed"]},
    },
}


def test_ls_is_a_table_with_a_star_at_a_default_among_several(invoke: Invoke, daemon: FakeDaemon) -> None:
    models = [model("net", "2.0"), model("net", "1.0", default=False, state="failed"), model("other", "1.0")]
    daemon.answer("GET /tsctl/status", {"models": models})

    result = invoke("ls")

    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["MODEL", "VERSION", "STATE", "WORKERS", "BATCH", "DELAY", "BATCHING", "REQ/S", "QUEUE"]
    assert rows[1][:4] == ["net", "2.0", "*", "ready"]
    assert rows[2] == ["net", "1.0", "failed", "1/2", "8", "50", "ms", "fixed", "12.3", "3"]
    assert rows[3][:3] == ["other", "1.0", "ready"]


def test_ls_as_json_is_the_daemons_list(invoke: Invoke, daemon: FakeDaemon) -> None:
    models = [model("net", "1.0")]
    daemon.answer("GET /tsctl/status", {"models": models})

    result = invoke("ls", "--json")

    assert json.loads(result.stdout) == models


def test_ls_without_a_model_leaves_stdout_empty(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": []})

    result = invoke("ls")

    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "No model is registered; `tsctl register ARCHIVE` adds one\n"


def test_status_counts_models_and_requests(invoke: Invoke, daemon: FakeDaemon) -> None:
    status = {
        "pid": 77,
        "version": "0.1.0",
        "python": "3.12",
        "started": 0,
        "inferenceAddress": "http://127.0.0.1:8080",
        "socket": "/run/control.sock",
        "modelStore": None,
        "stateDir": "/state",
        "models": [model("net", "1.0"), model("net", "2.0", state="failed")],
    }
    daemon.answer("GET /tsctl/status", status)

    shown = invoke("status")
    as_json = invoke("status", "--json")

    facts = dict(line.split("  ", 1) for line in shown.stdout.splitlines())
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    assert facts["daemon"] == "pid 77, tsctl 0.1.0, Python 3.12"
    assert facts["model store"] == "none"
    assert facts["models"] == "1 of 2 ready"
    assert facts["requests"] == "8 running, 6 waiting"
    assert json.loads(as_json.stdout) == status


def test_describe_is_the_daemons_document_when_nobody_watches(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [DESCRIBED])

    result = invoke("describe", "net")

    assert json.loads(result.stdout) == [DESCRIBED]


def test_describe_asks_for_the_version_that_is_named(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net/all", [])

    result = invoke("describe", "net/all")

    assert result.stdout == "[]\n"


def test_describe_shows_why_a_model_failed(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED)

    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["archive", "/store/[1]/net.mar"]
    assert lines[-4:] == ["ValueError: no [weights]", "Traceback", "  line", "printed"]


def with_batches(**batching: Any) -> dict[str, Any]:
    ours = DESCRIBED["tsctl"]
    batching = {"sizes": {"1": 90, "8": 10}, "reasons": {"delay": 1, "full": 99}} | batching
    return DESCRIBED | {"tsctl": ours | {"error": None, "batching": ours["batching"] | batching}}


def described(capsys: pytest.CaptureFixture[str], document: dict[str, Any]) -> list[str]:
    """What a person sees, with single spaces."""
    from tsctl.commands.describe import show

    show(document)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_describe_shows_the_settings_in_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(capsys, DESCRIBED)

    assert "batching fixed, at most 8 requests, 2.5 ms delay" in lines
    assert "timeouts 0.5 s for a batch, 60 s for loading" in lines
    assert "Traffic" not in lines


def test_describe_shows_what_workers_may_take_and_how_the_last_one_ended(capsys: pytest.CaptureFixture[str]) -> None:
    limits = [{"name": "maxMemory", "value": "4 GiB"}, {"name": "cpus", "value": "0-3"}]
    ended = "killed: it was over its memory limit of 4 GiB"
    ours = DESCRIBED["tsctl"] | {"settings": [*DESCRIBED["tsctl"]["settings"], *limits], "lastExit": ended}

    lines = described(capsys, DESCRIBED | {"tsctl": ours})

    assert "limits 4 GiB of memory for each worker, processors 0-3" in lines
    assert f"last exit {ended}" in lines


def test_describe_shows_what_was_learned(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(
        capsys,
        with_batches(
            learned={"batchMs": 8.1, "requestMs": 0.4, "guess": False}, arrivalsPerSecond=12.04, turnaroundMs=1327.4,
            regularConnections=7, openConnections=9, longestHoldMs=19.87,
        ),
    )  # fmt: skip

    start = lines.index("Traffic")
    assert lines[start + 1 : start + 6] == [
        "a batch takes 8.10 ms + 0.4 ms a request (learned)",
        "arrivals 12.0 requests/s lately",
        "connections 7 regular of 9 open",
        "turnaround 1327 ms from an answer to a request, the median",
        "longest hold 19.9 ms beside an idle worker",
    ]


def test_describe_says_that_a_guess_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(capsys, with_batches(learned={"batchMs": 4.0, "requestMs": 4.0, "guess": True}))

    assert "a batch takes 4.00 ms + 4.00 ms a request (a guess, while all batches have the same size)" in lines


def test_describe_says_what_each_reason_means_the_most_frequent_first(capsys: pytest.CaptureFixture[str]) -> None:
    meanings = {"full": "there were enough", "delay": "it was held"}

    lines = described(capsys, with_batches(meanings=meanings))

    start = lines.index("Batches by reason")
    assert lines[start + 1 : start + 3] == ["full ████████████ 99 there were enough", "delay ▏ 1 it was held"]


def test_describe_draws_many_batch_sizes_by_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    few = {str(size): 1 for size in range(1, 17)}

    assert "16" in [line.split()[0] for line in described(capsys, with_batches(sizes=few)) if line]
    lines = described(capsys, with_batches(sizes=few | {"33": 5}))

    start = lines.index("Batches by size")
    drawn = [(line.split()[0], line.split()[-1]) for line in lines[start + 1 : start + 8]]
    assert drawn == [("1", "1"), ("2", "1"), ("3-4", "2"), ("5-8", "4"), ("9-16", "8"), ("17-32", "0"), ("33-64", "5")]


def test_describe_shows_the_limits_of_a_request_and_what_has_expired(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    settings = [*DESCRIBED["tsctl"]["settings"][:2], {"name": "queueTimeout", "value": 2.5}]
    settings.append({"name": "clientTimeoutInMills", "value": 250.0})
    batching = DESCRIBED["tsctl"]["batching"] | {"expired": {"queue": 3, "worker": 1}}
    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"batching": batching, "settings": settings}})

    facts = dict(line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:8])
    assert facts["timeouts"] == "0.5 s for a batch, 60 s for loading, 2.5 s in the queue, 250 ms for an answer"
    assert facts["expired"] == "3 in the queue, 1 with a worker"


def test_describe_shows_the_batches_that_failed_and_were_run_again_one_by_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tsctl.commands.describe import show

    batching = DESCRIBED["tsctl"]["batching"] | {"isolated": {"batches": 3, "requestsFailed": 4}}
    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"batching": batching}})

    assert "isolated  batches run again row by row: 3, requests that failed alone, too: 4" in capsys.readouterr().out


def test_describe_shows_what_became_of_the_optimisations(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED)

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = lines.index(["Optimizations"])
    assert lines[at + 1 : at + 4] == [
        ["NAME", "APPLIED", "DRIFT", "TOOK", "WHY", "NOT"],
        ["fold", "yes", "2.5e-07", "0.12", "s"],
        ["bf16", "no", "-", "0.50", "s", "the", "model", "fails"],
    ]


def test_register_asks_for_one_worker_and_waits(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"status": 'Model "net" registered'})

    result = invoke("register", "net.mar")

    (request,) = daemon.requests
    assert result.stdout == 'Model "net" registered\n'
    assert request.query == {"url": "net.mar", "fallback_workers": "1", "synchronous": "true", "warnings": "true"}


def test_register_makes_a_path_that_exists_absolute(
    invoke: Invoke, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answer("POST /models", {"status": "done"})
    (tmp_path / "net.mar").touch()
    monkeypatch.chdir(tmp_path)

    invoke("register", "net.mar")

    assert daemon.requests[0].query["url"] == f"{tmp_path}/net.mar"


def test_register_passes_every_option_on(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"status": "done"})

    invoke(
        *("register", "net.mar", "--batch-size", "8", "--max-delay", "2.5", "--batching", "greedy", "--workers", "3"),
        *("--model-name", "other", "--handler", "mine.py:f", "--response-timeout", "5", "--startup-timeout", "6"),
        *("--queue-timeout", "2.5", "--optimize", "bf16,compile", "--no-wait"),
    )

    assert daemon.requests[0].query == {
        "url": "net.mar",
        "batch_size": "8",
        "max_batch_delay": "2.5",
        "batching": "greedy",
        "initial_workers": "3",
        "fallback_workers": "1",
        "model_name": "other",
        "handler": "mine.py:f",
        "response_timeout": "5.0",
        "startup_timeout": "6.0",
        "queue_timeout": "2.5",
        "optimize": "bf16,compile",
        "synchronous": "false",
        "warnings": "true",
    }


def test_register_shows_the_handlers_traceback(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"message": "Failed to load\nTraceback\n  File x"}, 500)

    result = invoke("register", "net.mar")

    assert result.exit_code == 1
    assert result.stderr == "error: Failed to load\n\nTraceback\n  File x\n"


def test_scale_says_from_what_to_what(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [DESCRIBED])
    daemon.answer("PUT /models/net", {"status": "scaled"})

    result = invoke("scale", "net", "--workers", "4")

    assert result.stdout == "Scaled `net` 1.0 from 1 to 4 workers\n"
    assert daemon.requests[1].query == {"min_worker": "4", "max_worker": "4", "synchronous": "true", "warnings": "true"}


@pytest.mark.parametrize("command", ["register net.mar", "scale net --workers 4"])
def test_what_the_daemon_warns_of_goes_to_stderr(command: str, invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [DESCRIBED])
    daemon.answer("POST /models", {"status": "done", "warning": "4 workers share 2 cores"})
    daemon.answer("PUT /models/net", {"status": "done", "warning": "4 workers share 2 cores"})

    result = invoke(*command.split())

    assert result.exit_code == 0
    assert result.stderr == "warning: 4 workers share 2 cores\n"


def test_default_sets_the_version(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("PUT /models/net/2.0/set-default", {"status": "set"})

    result = invoke("default", "net/2.0")

    assert result.stdout == "set\n"


def test_unregister_takes_a_version(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("DELETE /models/net/2.0", {"status": "gone"})

    result = invoke("unregister", "net/2.0")

    assert result.stdout == "gone\n"
