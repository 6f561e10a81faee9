"""The verbs that tell the daemon what to serve, and show what it serves."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl import render
from tsctl.commands.ls import columns, dropped
from tsctl.commands.status import last_minute, troubles


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


NET = {"modelName": "net", "modelVersion": "1.0", "minWorkers": 1, "tsctl": {}}  # as `GET /models/net` describes it
AT_8080 = {"inferenceAddress": "http://127.0.0.1:8080", "models": list[str]()}


def test_ls_is_a_table_with_a_star_at_a_default_among_several(invoke: Invoke, daemon: FakeDaemon) -> None:
    models = [model("net", "2.0"), model("net", "1.0", default=False, state="failed"), model("other", "1.0")]
    daemon.answer("GET /tsctl/status", {"models": models})

    result = invoke("ls")

    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["MODEL", "VERSION", "STATE", "WORKERS", "BATCH", "DELAY", "BATCHING", "REQ/S", "QUEUE"]
    assert rows[1][:4] == ["net", "2.0", "*", "ready"]
    assert rows[2] == ["net", "1.0", "failed", "1/2", "8", "50", "ms", "fixed", "12.3", "3"]
    assert rows[3][:3] == ["other", "1.0", "ready"]


def test_ls_has_the_gpus_of_models_and_what_their_workers_hold_there(invoke: Invoke, daemon: FakeDaemon) -> None:
    held = {"0": 2**30, "1": 2**30, "2": None, "5": 2**30}
    models = [model("net", "1.0") | {"gpuMemory": held}, model("other", "1.0") | {"gpuMemory": {}}]
    daemon.answer("GET /tsctl/status", {"models": models})

    rows = [line.split() for line in invoke("ls").stdout.splitlines()]

    assert rows[0][4] == "GPU"
    assert (rows[1][4:7], rows[2][4:6]) == (["0-2,5", "3.0", "GiB"], ["-", "8"])


RECENT = {"seconds": 60, "requests": 1204, "errors": 3, "p50Ms": 5.0, "p99Ms": 34.25}
SERVER = {"name": "gRPC 127.0.0.1:7070", "up": True, "ends": 0, "why": "", "at": None}


def recent_models() -> list[dict[str, Any]]:
    """Make models with names of forty characters, of which one has answered nothing yet."""
    return [
        model("n" * 40, "1.0") | {"recent": RECENT},
        model("m" * 40, "1.0", state="crashing") | {"recent": RECENT | {"errors": 0, "p99Ms": None}},
    ]


def test_ls_shows_recent_errors_and_latency(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": [*recent_models(), model("old", "1.0")]})

    rows = [line.split() for line in invoke("ls").stdout.splitlines()]

    assert rows[0][-4:] == ["REQ/S", "ERRORS", "P99", "QUEUE"]
    assert [row[-4:-1] for row in rows[1:]] == [["3", "34.2", "ms"], ["12.3", "0", "-"], ["12.3", "-", "-"]]


def test_ls_has_those_in_trouble_first_and_says_why(invoke: Invoke, daemon: FakeDaemon) -> None:
    troubled = model("net", "1.0") | {"troubles": ["2.8 % errors", "queue 51 of 100"]}
    failed = model("other", "1.0", state="failed") | {"troubles": ["failed"]}
    daemon.answer("GET /tsctl/status", {"models": [model("a", "1.0") | {"troubles": []}, troubled, failed]})

    lines = invoke("ls").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["MODEL", "net", "other", "a"]
    assert lines[0].split()[3] == "TROUBLE" and "2.8 % errors, queue 51 of 100" in lines[1]
    assert lines[2].split()[2:4] == ["failed", "-"]  # the state says so


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (120, ["MODEL", "VERSION", "STATE", "WORKERS", "BATCH", "DELAY", "REQ/S", "ERRORS", "P99", "QUEUE"]),
        (80, ["MODEL", "VERSION", "STATE", "ERRORS", "P99"]),
        (60, ["MODEL", "STATE", "ERRORS"]),
        (40, ["MODEL", "STATE"]),
    ],
)
def test_ls_drops_columns_before_it_cuts_a_name(monkeypatch: pytest.MonkeyPatch, width: int, titles: list[str]) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=shown, width=width))
    models = recent_models()

    table = columns(models)
    render.table([title for title, _ in table], zip(*(cells for _, cells in table), strict=True), drop=dropped(models))

    lines = shown.getvalue().splitlines()
    assert lines[0].split() == titles
    assert max(len(line.rstrip()) for line in lines) <= width
    assert "".join(line.split()[0] for line in lines[1:]) == "n" * 40 + "m" * 40
    assert len(lines) == (3 if width > 50 else 5)  # at 40 columns, a name goes on in a second line


def test_of_several_versions_the_version_is_never_dropped() -> None:
    models = [model("net", "2.0"), model("net", "1.0", default=False)]

    assert "VERSION" not in dropped(models)
    assert "VERSION" in dropped(models[:1])


@pytest.mark.parametrize(
    ("recent", "shown"),
    [
        ([RECENT, RECENT | {"p99Ms": 50.0}], "2408 requests, 6 errors, p99 up to 50.0 ms (b/1.0)"),
        ([RECENT | {"requests": 0, "errors": 0, "p99Ms": None}, None], "0 requests, 0 errors"),
    ],
)
def test_status_sums_up_the_last_minute(recent: list[dict[str, Any] | None], shown: str) -> None:
    models = [model(name, "1.0") | {"recent": each} for name, each in zip("ab", recent, strict=True)]

    assert last_minute(models) == [("last minute", shown)]


def test_status_of_an_older_daemon_has_no_last_minute() -> None:
    assert last_minute([model("net", "1.0")]) == []


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param({}, [], id="of an older daemon"),
        pytest.param({"servers": [SERVER], "internalErrors": 0}, [], id="nothing has ended"),
        pytest.param(
            {"servers": [SERVER | {"ends": 1, "why": "ValueError: x", "at": 90.0}]},
            [("server", "gRPC 127.0.0.1:7070: up again; ended once, last 10 s ago: ValueError: x")], id="one is back",
        ),
        pytest.param(
            {"servers": [SERVER | {"up": False, "ends": 3, "why": "x", "at": 99.0}], "internalErrors": 2},
            [
                ("server", "gRPC 127.0.0.1:7070: down, and being started again; ended 3 times, last 1 s ago: x"),
                ("internal errors", "2; see `tsctl events --level error`"),
            ],
            id="one is down, and something has raised",
        ),
    ],
)  # fmt: skip
def test_status_shows_what_has_ended(
    status: dict[str, Any], shown: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 100.0)

    assert troubles(status) == shown


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
        "gpus": [
            {"name": "NVIDIA H100", "uuid": "GPU-a", "memory": 80 * 2**30}, {"name": "", "uuid": "", "memory": 0},
        ],
    }  # fmt: skip
    daemon.answer("GET /tsctl/status", status)

    shown = invoke("status")
    as_json = invoke("status", "--json")

    facts = dict(line.split("  ", 1) for line in shown.stdout.splitlines())
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    assert facts["daemon"] == "pid 77, tsctl 0.1.0, Python 3.12"
    assert facts["model store"] == "none"
    assert facts["models"] == "1 of 2 ready"
    assert (facts["GPU 0"], facts["GPU 1"]) == ("NVIDIA H100, 80.0 GiB", "NVIDIA")
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
        *("--name", "other", "--handler", "mine.py:f", "--response-timeout", "5", "--startup-timeout", "6"),
        *("--queue-timeout", "2.5", "--cpus", "0-3", "--no-wait"),
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
        "cpus": "0-3",
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


@pytest.mark.parametrize("command", ["register net.mar", "scale net 4"])
def test_what_the_daemon_warns_of_goes_to_stderr(command: str, invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("POST /models", {"status": "done", "warning": "4 workers share 2 cores"})
    daemon.answer("PUT /models/net", {"status": "done", "warning": "4 workers share 2 cores"})

    result = invoke(*command.split())

    assert result.exit_code == 0
    assert result.stderr == "warning: 4 workers share 2 cores\n"


def test_scale_to_a_range_says_how_the_number_comes_to_change(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("PUT /models/net", {"status": "scaled"})

    result = invoke("scale", "net", "2", "--max-workers", "4")

    assert result.stdout == "Scaled `net` 1.0 from 1 to 2-4 workers\n"
    assert "once there is a target: `tsctl set net --target-queue 50`" in result.stderr
    assert (daemon.requests[1].query["min_worker"], daemon.requests[1].query["max_worker"]) == ("2", "4")


def test_scale_to_a_range_is_no_news_where_there_is_a_target(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET | {"tsctl": {"autoscaling": {}}}])
    daemon.answer("PUT /models/net", {"status": "scaled"})

    result = invoke("scale", "net", "2", "--max-workers", "4", "--json")

    assert json.loads(result.stdout)["workers"] == {"from": 1, "to": 2, "most": 4}
    assert result.stderr == ""


def test_scale_refuses_a_range_that_ends_before_it_begins(invoke: Invoke, daemon: FakeDaemon) -> None:
    result = invoke("scale", "net", "4", "--max-workers", "2")

    assert result.exit_code == 2
    assert "--max-workers is 2, fewer than N, 4" in result.stderr
    assert daemon.requests == []


def test_scale_as_json(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("PUT /models/net", {"status": "scaled", "warning": "4 workers share 2 cores"})

    result = invoke("scale", "net", "--workers", "4", "--json")

    assert json.loads(result.stdout) == {
        "modelName": "net", "modelVersion": "1.0", "workers": {"from": 1, "to": 4}, "warning": "4 workers share 2 cores"
    }  # fmt: skip
    assert result.stderr == ""


def test_register_as_json_is_the_daemons_document(invoke: Invoke, daemon: FakeDaemon) -> None:
    document = {"status": "registered", "modelName": "net", "modelVersion": "1.0", "batchSize": 8}
    daemon.answer("POST /models", document)
    daemon.answer("GET /tsctl/status", AT_8080)

    result = invoke("register", "net.mar", "--json")

    assert json.loads(result.stdout) == document | {"url": "http://127.0.0.1:8080/predictions/net/1.0"}
    assert result.stderr == ""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_register_that_does_not_wait_names_the_model(invoke: Invoke, daemon: FakeDaemon, options: list[str]) -> None:
    document = {"status": "Processing worker updates...", "modelName": "net", "modelVersion": "2.0"}
    daemon.answer("POST /models", document, 202)
    daemon.answer("GET /tsctl/status", AT_8080)

    result = invoke("register", "net.mar", "--no-wait", *options)

    assert "Processing" not in result.stdout
    assert "Version: 2.0 starts its workers; `tsctl ls` shows when they are ready" in result.stdout


@pytest.mark.parametrize("verb", ["retry", "restart"])
def test_the_version_that_is_meant_is_named(invoke: Invoke, daemon: FakeDaemon, verb: str) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer(f"POST /models/net/1.0/{verb}", {"status": "done"})

    waited, at_once = invoke(verb, "net"), invoke(verb, "net", "--no-wait")

    assert waited.stdout == "done\n"
    assert at_once.stdout == 'Model "net" Version: 1.0 starts its workers; `tsctl ls` shows when they are ready\n'
    sent = [request.query["synchronous"] for request in daemon.requests if request.method == "POST"]
    assert sent == ["true", "false"]


def test_load_and_unload_name_the_version_that_they_mean(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("GET /models/net", [NET])
    daemon.answer("POST /models/net/1.0/load", {"status": "loaded"})
    daemon.answer("POST /models/net/1.0/unload", {"status": "unloaded"})

    told = [invoke("unload", "net").stdout, invoke("load", "net").stdout, invoke("load", "net", "--no-wait").stdout]

    assert told[:2] == ["unloaded\n", "loaded\n"]
    assert told[2] == 'Model "net" Version: 1.0 starts its workers; `tsctl ls` shows when they are ready\n'
    sent = [request.query.get("synchronous") for request in daemon.requests if request.method == "POST"]
    assert sent == [None, "true", "false"]


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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param("Model store has not been configured.", "no file `shp.py`", id="no store"),
        pytest.param(
            "Model not found at: shp.py (looked in /s)", "no file `shp.py`, nor in the model store", id="a store"
        ),
    ],
)
def test_a_name_that_is_nowhere_is_no_file(
    invoke: Invoke, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").touch()
    daemon.answer("POST /models", {"code": 404, "type": "ModelNotFoundException", "message": said}, 404)

    result = invoke("register", "shp.py")

    assert result.stderr.splitlines() == [f"error: {told}", "hint: did you mean `shop.py`?"]


def test_a_hint_names_the_model_that_was_typed(invoke: Invoke, daemon: FakeDaemon, tmp_path: Path) -> None:
    said = "Model version 1.0 is already registered for model trial"
    daemon.answer("POST /models", {"code": 409, "type": "ConflictStatusException", "message": said}, 409)
    (tmp_path / "shop.py").write_text("def predict(n: int) -> int: return n\n")

    result = invoke("register", tmp_path / "shop.py", "--name", "trial")

    assert "hint: choose a name with `--name`, or `tsctl unregister trial`" in result.stderr
