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


NET = {"modelName": "net", "modelVersion": "1.0", "minWorkers": 1}  # as `GET /models/net` describes it


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
        "python": "/usr/bin/python3",
        "prefix": "/usr",
        "pythonVersion": "3.12",
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
        "response_timeout": "5",
        "startup_timeout": "6",
        "queue_timeout": "2.5",
        "optimize": "bf16,compile",
        "synchronous": "false",
        "warnings": "true",
    }


def test_register_asks_to_replace_only_where_it_is_told_to(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"status": "done"})

    invoke("register", "net.mar")
    invoke("register", "net.mar", "--replace")

    assert ["replace" in request.query for request in daemon.requests] == [False, True]
    assert daemon.requests[1].query["replace"] == "true"


def test_register_shows_the_handlers_traceback(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", {"message": "Failed to load\nTraceback\n  File x"}, 500)

    result = invoke("register", "net.mar")

    assert result.exit_code == 1
    assert result.stderr == "error: Failed to load\n\nTraceback\n  File x\n"


def test_scale_says_from_what_to_what(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("PUT /models/net", {"status": "scaled"})

    result = invoke("scale", "net", "--workers", "4")

    assert result.stdout == "Scaled `net` 1.0 from 1 to 4 workers\n"
    assert daemon.requests[1].query == {"min_worker": "4", "max_worker": "4", "synchronous": "true", "warnings": "true"}


@pytest.mark.parametrize("command", ["register net.mar", "scale net --workers 4"])
def test_what_the_daemon_warns_of_goes_to_stderr(command: str, invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("POST /models", {"status": "done", "warning": "4 workers share 2 cores"})
    daemon.answer("PUT /models/net", {"status": "done", "warning": "4 workers share 2 cores"})

    result = invoke(*command.split())

    assert result.exit_code == 0
    assert result.stderr == "warning: 4 workers share 2 cores\n"


def test_retry_names_the_version_that_it_means(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("POST /models/net/1.0/retry", {"status": "tried again"})

    waited, at_once = invoke("retry", "net"), invoke("retry", "net", "--no-wait")

    assert waited.stdout == at_once.stdout == "tried again\n"
    sent = [request.query["synchronous"] for request in daemon.requests if request.method == "POST"]
    assert sent == ["true", "false"]


def test_ls_says_how_one_that_has_failed_is_tried_again(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": [model("a", "1.0"), model("net", "2.0", state="failed")]})

    hint = "hint: `tsctl describe net/2.0` shows why loading failed; retry with `tsctl retry net/2.0`\n"
    assert invoke("ls").stderr == hint
    assert invoke("ls", "--json").stderr == ""


def test_default_sets_the_version(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("PUT /models/net/2.0/set-default", {"status": "set"})

    result = invoke("default", "net/2.0")

    assert result.stdout == "set\n"


def test_unregister_takes_a_version(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("DELETE /models/net/2.0", {"status": "gone"})

    result = invoke("unregister", "net/2.0")

    assert result.stdout == "gone\n"
