"""The verbs that tell the daemon what to serve, and show what it serves."""

import io
import json
import time
from typing import Any

import pytest
from rich.console import Console

from tests.kit.said import said_in
from tests.tsctl.conftest import Invoke
from tests.tsctl.documents import model
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl import render
from tsctl.commands.ls import columns, dropped
from tsctl.commands.status import last_minute, troubles


def test_ls_has_the_gpus_of_models_and_what_their_workers_hold_there(invoke: Invoke, daemon: FakeDaemon) -> None:
    held = {"0": 2**30, "1": 2**30, "2": None, "5": 2**30}
    models = [model("net", "1.0") | {"gpuMemory": held}, model("other", "1.0") | {"gpuMemory": {}}]
    gpus = [{"name": "" if number == 5 else "A Card", "memory": 2**32} for number in range(6)]
    daemon.answer("GET /tsctl/status", {"models": models, "gpus": gpus})

    shown = invoke("ls")

    rows = [line.split() for line in shown.stdout.splitlines()]
    assert len(rows) == 3, "the table is alone in stdout"
    assert rows[0][4] == "GPU"
    assert (rows[1][4:7], rows[2][4:6]) == (["0-2,5", "3.0", "GiB"], ["-", "8"])
    assert shown.stderr.splitlines() == ["GPU 0-2: A Card, 4.0 GiB each", "GPU 5: NVIDIA"]


RECENT = {"seconds": 60, "requests": 1204, "errors": 3, "p50Ms": 5.0, "p99Ms": 34.25}
SERVER = {"name": "gRPC 127.0.0.1:7070", "up": True, "ends": 0, "why": "", "at": None}


def recent_models() -> list[dict[str, Any]]:
    """Make models with names of forty characters, of which one has answered nothing yet."""
    return [
        model("n" * 40, "1.0") | {"recent": RECENT},
        model("m" * 40, "1.0", state="crashing") | {"recent": RECENT | {"errors": 0, "p99Ms": None}},
    ]


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
        ([RECENT | {"requests": 0, "errors": 0, "p99Ms": None}], "0 requests, 0 errors"),
    ],
)
def test_status_sums_up_the_last_minute(recent: list[dict[str, Any]], shown: str) -> None:
    models = [model(name, "1.0") | {"recent": each} for name, each in zip("ab", recent, strict=False)]

    assert last_minute(models) == [("last minute", shown)]


@said_in("ended.txt")
def test_status_shows_what_has_ended(given: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(time, "time", lambda: 100.0)
    status = json.loads(given)
    if "server" in status:
        status["servers"] = [SERVER | status.pop("server")]
    return "\n".join(f"{name}: {fact}" for name, fact in troubles(status))
