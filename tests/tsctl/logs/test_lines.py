"""Each line that a daemon writes is read; and what is read can be written as text."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.texts.test_log_format import MOMENT, record
from tsctl.daemon.api.access_log import AccessLog
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.logs import DaemonFormat, OutputFormat, json_of
from tsctl.daemon.http.messages import Request
from tsctl.logs.lines import moment_of, parse, printed, text_of


def access_line(folder: Path, *, as_json: bool) -> str:
    log = AccessLog(folder / f"{as_json}.log", FakeClock(), foreground=False, as_json=as_json)
    log.note(Request("POST", '/a "b" 200 1.0ms c', [], peer="127.0.0.1:4000", id="an-id"), 503, 0.0123)
    log.close()
    return (folder / f"{as_json}.log").read_text().removesuffix("\n")


def without_time(fields: dict[str, Any] | None) -> dict[str, Any]:
    assert fields is not None
    return {name: value for name, value in fields.items() if name not in ("time", "logger", "requestBytes")}


def test_the_daemons_line_is_the_same_in_both_formats() -> None:
    text, object_ = (DaemonFormat(as_json=as_json).format(record("now: %")) for as_json in (False, True))

    assert without_time(parse(text, "daemon")) == without_time(parse(object_, "daemon"))
    assert moment_of(parse(text, "daemon")["time"]) == MOMENT  # type: ignore[index]
    assert text_of(parse(object_, "daemon") or {}) == text


def test_a_workers_line_is_the_same_in_both_formats() -> None:
    text, object_ = (
        OutputFormat("m", "1.0", as_json=as_json).lines("7 stdout x", 7, "stderr", MOMENT, named=True)
        for as_json in (False, True)
    )

    assert parse(text, "model") == parse(object_, "model")
    assert text_of(parse(object_, "model") or {}) == text


def test_a_requests_line_is_the_same_in_both_formats(tmp_path: Path) -> None:
    text, object_ = (access_line(tmp_path, as_json=as_json) for as_json in (False, True))

    assert without_time(parse(text, "access")) == without_time(parse(object_, "access"))
    assert parse(text, "access")["status"] == 503, "whatever the path looks like"  # type: ignore[index]
    assert text_of(parse(text, "access") or {}) == text


@pytest.mark.parametrize(
    ("line", "log", "text"),
    [
        pytest.param("2026-01-31T12:00:00.123+01:00 WARNING (3 lines …)", "access", "(3 lines …)", id="about a file"),
        pytest.param("2026-01-31T12:00:00.123+01:00 7 stdout ", "model", "", id="an empty line of a worker"),
    ],
)
def test_the_text_of_a_line(line: str, log: str, text: str) -> None:
    fields = parse(line, log)

    assert fields is not None and fields["text"] == text


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "",
        '  File "/a.py", line 3',
        "{",
        "{}",
        json_of({"time": "never", "level": "info", "log": "model"}),
        json.dumps(["time", "level", "log"]),
        "2026-01-31T12:00:00 is no line of a log",
    ],
)
@pytest.mark.parametrize("log", ["daemon", "access", "model"])
def test_a_line_without_a_time_continues_another(line: str, log: str) -> None:
    assert parse(line, log) is None
    assert printed(line) == line, "and is printed as it is"


@pytest.mark.parametrize("stamp", ["2026-02-31T12:00:00.000+01:00", "2026-01-31T25:00:00.000+01:00"])
def test_a_time_that_never_was_is_none(stamp: str) -> None:
    assert parse(f"{stamp} INFO    x", "daemon") is None


@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_worker_has_printed(as_json: bool) -> None:
    line = OutputFormat("m", "1.0", as_json=as_json).lines("  x = 1", 7, "stdout", MOMENT)

    assert printed(line) == "  x = 1"
