"""`tsctl upgrade` shows how far it is, what was replaced by what, or why nothing was."""

import json
import sys
from typing import Any

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon

DONE = {
    "old": {"pid": 11, "version": "0.1.0"},
    "new": {"pid": 12, "version": "0.2.0"},
    "seconds": 1.25,
    "grace": 30.0,
}


def answer(daemon: FakeDaemon, *events: dict[str, Any]) -> None:
    body = "".join(json.dumps(event) + "\n" for event in events)
    daemon.answer_body("POST /tsctl/upgrade", body.encode(), "application/x-ndjson")


def stage(name: str, done: int = 0, total: int = 0) -> dict[str, Any]:
    return {"stage": name, "done": done, "total": total}


def done(status: int, document: dict[str, Any]) -> dict[str, Any]:
    return {"stage": "done", "status": status, "document": document}


def test_each_step_is_a_line_and_the_last_says_what_was_replaced(invoke: Invoke, daemon: FakeDaemon) -> None:
    answer(
        daemon, stage("checking"), stage("starting"), stage("loading", 0, 2), stage("loading", 0, 2),
        stage("loading", 2, 2), stage("stage of the future"), stage("handing"), done(200, DONE),
    )  # fmt: skip

    result = invoke("upgrade", "--grace", "5")

    assert result.exit_code == 0
    assert result.stdout == "Upgraded the daemon in 1.2 s: tsctl 0.1.0, pid 11 → tsctl 0.2.0, pid 12\n"
    assert result.stderr.splitlines() == [
        "checking that a second daemon fits into memory",
        "starting the new daemon",
        "loading, 0 of 2 workers ready",
        "loading, 2 of 2 workers ready",
        "handing over",
        "The old daemon finishes its requests; idle connections close after 5 s",
    ]


def test_the_daemon_is_told_what_is_asked_for(invoke: Invoke, daemon: FakeDaemon) -> None:
    answer(daemon, done(200, DONE))

    invoke("upgrade", "--grace", "5", "--timeout", "60", "--no-check-memory")

    assert daemon.requests[0].query == {
        "grace": "5.0",
        "timeout": "60.0",
        "check_memory": "false",
        "python": sys.executable,
    }


def test_programs_get_the_document(invoke: Invoke, daemon: FakeDaemon) -> None:
    answer(daemon, done(200, DONE))

    assert json.loads(invoke("upgrade", "--json").stdout) == DONE


def test_a_failure_is_told_with_its_traceback(invoke: Invoke, daemon: FakeDaemon) -> None:
    answer(daemon, stage("checking"), done(500, {"message": "The daemon goes on: it fails\n\nTraceback …\nValueError"}))

    result = invoke("upgrade")

    assert result.exit_code == 1
    assert "error: The daemon goes on: it fails\n\nTraceback …\nValueError" in result.stderr


def test_a_daemon_that_ends_in_between_is_a_failure(invoke: Invoke, daemon: FakeDaemon) -> None:
    answer(daemon, stage("checking"))

    result = invoke("upgrade")

    assert result.exit_code == 1
    assert "exited before the upgrade was done" in result.stderr
