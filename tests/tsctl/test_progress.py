"""A command that takes long shows what the daemon is doing, on a terminal."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl import render
from tsctl.client import NDJSON, DaemonClient
from tsctl.errors import CliError, Interrupted
from tsctl.progress import work


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Make stderr a terminal; give what is drawn there."""
    drawn = io.StringIO()
    monkeypatch.setattr(drawn, "isatty", lambda: True)
    monkeypatch.setattr("tsctl.progress.sys", SimpleNamespace(stderr=drawn))
    monkeypatch.setattr(render, "err", Console(file=drawn, force_terminal=True, width=120, highlight=False))
    return drawn


def answer_events(daemon: FakeDaemon, *events: dict[str, Any]) -> None:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    daemon.answer_body("POST /models", lines.encode(), NDJSON)


def register(client: DaemonClient) -> Any:
    return work(client, "POST", "/models", subject="net.mar", hint="`tsctl ls` shows it", url="net.mar")


def test_the_last_event_is_the_answer(daemon: FakeDaemon, terminal: io.StringIO) -> None:
    answer_events(
        daemon,
        {"stage": "downloading", "done": 512, "total": 0},
        {"stage": "unpacking", "done": 1024, "total": 2048},
        {"stage": "loading", "done": 0, "total": 2},
        {"stage": "a stage that is new"},
        {"stage": "done", "status": 200, "document": {"status": "registered"}},
    )

    document = register(DaemonClient())

    assert document == {"status": "registered"}
    assert daemon.requests[0].headers["Accept"] == NDJSON
    assert "loading net.mar, 0 of 2 workers ready" in terminal.getvalue()


def test_a_refusal_at_the_end_is_an_error(daemon: FakeDaemon, terminal: io.StringIO) -> None:
    refusal = {"stage": "done", "status": 500, "document": {"message": "Failed to load\nTraceback"}}
    answer_events(daemon, {"stage": "loading"}, refusal)

    with pytest.raises(CliError) as refused:
        register(DaemonClient())
    assert (refused.value.message, refused.value.details) == ("Failed to load", "Traceback")


def test_a_daemon_that_ends_before_it_is_done_is_an_error(daemon: FakeDaemon, terminal: io.StringIO) -> None:
    answer_events(daemon, {"stage": "loading"})

    with pytest.raises(CliError, match="the daemon exited before the command was done") as broken:
        register(DaemonClient())
    assert broken.value.hint == "see `tsctl logs`"


def test_ctrl_c_leaves_the_daemon_to_it_and_says_how_to_see_more() -> None:
    class Pressed(DaemonClient):
        def json(self, method: str, target: str, **parameters: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"interrupted; the daemon goes on with `net\.mar`") as interrupted:
        register(Pressed())
    assert interrupted.value.hint == "`tsctl ls` shows it"
    assert interrupted.value.exit_code == 130
