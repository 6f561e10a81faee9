"""`tsctl events`: the lines, the question to the daemon, and the files of a daemon that is gone."""

import contextlib
import io
import itertools
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl import render
from tsctl.cli import main
from tsctl.commands import events
from tsctl.daemon import paths
from tsctl.daemon.events.events import LEVELS, Events, Journal
from tsctl.terminal.since_option import parse_since

pytestmark = pytest.mark.usefixtures("utc")
DIED: dict[str, Any] = {
    "sequence": 7, "time": 1_800_000_000.5, "level": "error", "kind": "worker-exited", "model": "m",
    "version": "1.0", "worker": 12, "requests": ["r1", "r2"], "text": "worker 12 ended",
}  # fmt: skip


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (120, "2027-01-15 08:00:00 error   worker-exited       m/1.0: worker 12 ended (requests r1, r2)"),
        (80, "01-15 08:00:00 error   m/1.0: worker 12 ended (requests r1, r2)"),
        (40, "01-15 08:00:00 error   m/1.0: worker 12…"),
    ],
)
def test_on_a_terminal_an_event_is_one_row(
    invoke: Invoke, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, width: int, line: str
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=screen, width=width, highlight=False, force_terminal=True))
    daemon.answer("GET /tsctl/events", {"events": [DIED], "last": 7})
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))

    with contextlib.suppress(SystemExit):
        main(["events"], prog_name="tsctl", standalone_mode=False)

    assert re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()) == f"{line}\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 999_910.0),
        ("10m", 999_400.0),
        ("10 min", 999_400.0),
        ("1.5h", 994_600.0),
        ("2d", 827_200.0),
        ("1w", 395_200.0),
        ("1970-01-02", 86_400.0),
        ("1970-01-01 01:00", 3_600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
    ],
)
def test_a_time_is_a_duration_back_or_a_date(text: str, seconds: float) -> None:
    assert parse_since(text, 1_000_000.0) == seconds


def test_its_levels_are_the_daemons() -> None:
    assert tuple(LEVELS) == events.LEVELS


@pytest.mark.parametrize("text", ["", "soon", "10", "-5m", "5y", "2027-13-01", "1e999h"])
def test_another_time_is_wrong_usage(invoke: Invoke, text: str) -> None:
    result = invoke("events", f"--since={text}")

    assert result.exit_code == 2 and "expected a duration such as 10m or 2h" in result.stderr


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The state directory of a daemon that is gone, with events in two files."""
    state = tmp_path / "state" / "tsctl"
    state.mkdir(parents=True)
    times = itertools.count(1_800_000_000.0)
    kept = Events(Journal(paths.events_file(state), most_bytes=400), wall=lambda: next(times))
    kept.add("started", "listening")
    kept.add("worker-exited", "worker 1 ended", model="m", version="1.0")
    kept.add("worker-exited", "worker 2 ended", model="m", version="2.0")
    kept.add("scaled", "scaled", model="other", version="1.0")
    kept.close()
    assert len(list(state.glob("events.jsonl*"))) == 3
    return state


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], ["listening", "worker 1 ended", "worker 2 ended", "scaled"], id="all"),
        pytest.param(["m"], ["worker 1 ended", "worker 2 ended"], id="of a model"),
        pytest.param(["m/2.0"], ["worker 2 ended"], id="of a version"),
        pytest.param(["--level", "error", "-n", "1"], ["worker 2 ended"], id="the last one of a level"),
        pytest.param(["--since", "2027-01-15T08:00:02Z"], ["worker 2 ended", "scaled"], id="from a time on"),
    ],
)
def test_without_a_daemon_the_last_ones_events_are_shown(
    invoke: Invoke, left: Path, options: list[str], expected: list[str]
) -> None:
    with paths.events_file(left).open("a") as file:
        file.write("torn\n[]\n")

    result = invoke("events", "--json", *options)

    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == expected
    assert "these are the last events of the one before" in result.stderr and result.exit_code == 0


def test_without_a_daemon_and_its_files_there_is_nothing(invoke: Invoke) -> None:
    assert invoke("events").exit_code == 3
    assert invoke("events", "-f").exit_code == 3


def test_a_follower_goes_on_behind_the_last_event_with_the_next_daemon(
    invoke: Invoke, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def streams(event: dict[str, Any]) -> None:
        body = b": hello\n\nid: 7\ndata: " + json.dumps(event).encode() + b"\n\n"
        daemon.answer_body("GET /tsctl/events", body, "text/event-stream")

    sleeps = iter([lambda: streams(DIED | {"sequence": 8, "text": "again"}), None])

    def sleep(seconds: float) -> None:
        happening = next(sleeps)
        if happening is None:
            raise KeyboardInterrupt
        happening()

    streams(DIED)
    monkeypatch.setattr(events, "time", SimpleNamespace(sleep=sleep, strftime=lambda *_: "", localtime=lambda _: None))

    result = invoke("events", "-f", "--json", "m", "-n", "5")

    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == ["worker 12 ended", "again"]
    first, second = daemon.requests
    assert first.headers["Accept"] == "text/event-stream"
    assert first.query == {"model": "m", "level": "info", "limit": "5"}
    assert second.query == {"model": "m", "level": "info", "after": "7"}


@pytest.mark.parametrize(
    ("lines", "first"), [("5", [DIED]), ("0", [])], ids=["the last are shown first", "only new ones are wanted"]
)
def test_a_daemon_that_does_not_stream_is_asked_again(
    invoke: Invoke, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, lines: str, first: list[dict[str, Any]]
) -> None:
    later = {"events": [DIED | {"sequence": 9, "text": "again"}], "last": 9}
    sleeps = iter([lambda: daemon.answer("GET /tsctl/events", later)])

    def sleep(seconds: float) -> None:
        happening = next(sleeps, None)
        if happening is None:
            raise KeyboardInterrupt
        happening()

    daemon.answer("GET /tsctl/events", {"events": first, "last": 7})
    monkeypatch.setattr(events, "time", SimpleNamespace(sleep=sleep, strftime=lambda *_: "", localtime=lambda _: None))

    result = invoke("events", "-f", "--json", "-n", lines)

    assert [json.loads(line)["sequence"] for line in result.stdout.splitlines()] == [*[7 for _ in first], 9]
    assert [(each.query.get("after"), each.query.get("limit")) for each in daemon.requests] == [
        (None, lines), ("7", None),
    ]  # fmt: skip
