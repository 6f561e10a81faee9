"""The lines of the logs: one format of time, JSON where asked for, priorities where stderr is the journal."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.api.access_log import AccessLog, json_line_of
from tsctl.daemon.core import logs
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.logs import (
    DaemonFormat,
    JournalFormat,
    OutputFormat,
    is_journal,
    json_of,
    stamp_of,
    without_secrets,
)
from tsctl.daemon.http.messages import Request

MOMENT = 1_900_000_000.5
FIELDS = ["time", "level", "log", "client", "method", "path", "status", "ms", "requestBytes", "request"]


@pytest.fixture(params=["UTC", "Europe/Berlin", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def record(text: str, *, level: int = logging.INFO, **further: object) -> logging.LogRecord:
    made = logging.LogRecord("tsctl.daemon.server", level, "", 0, text, None, None)
    made.created = MOMENT
    vars(made).update(further)
    return made


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("moment", [0.0, MOMENT, MOMENT + 0.0009, MOMENT + 0.4999, 1_780_000_000.0])
def test_a_stamp_is_the_moment_to_the_millisecond(moment: float) -> None:
    stamp = stamp_of(moment)

    assert len(stamp) == len("2026-01-31T12:00:00.123+01:00")
    assert 0.0 <= moment - datetime.fromisoformat(stamp).timestamp() < 0.001


def test_stamps_of_one_zone_sort_as_their_moments(zone: None) -> None:
    moments = [MOMENT + each * 0.37 for each in range(200)]

    assert sorted(map(stamp_of, moments)) == list(map(stamp_of, moments))


@pytest.mark.usefixtures("zone")
def test_all_logs_have_the_same_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    access = AccessLog(tmp_path / "access.log", FakeClock(), foreground=False)
    access.note(Request("GET", "/ping", [], peer="p", id="i"), 200, 0.0)
    access.close()
    versions = logs.ModelLogs(lambda name, version: tmp_path / "m.log", foreground=False)
    versions.open("m", "1.0")("printed", 7, "stderr")
    versions.close("m", "1.0")

    stamp = stamp_of(MOMENT)
    assert DaemonFormat(as_json=False).format(record("listening")) == f"{stamp} INFO    listening"
    assert (tmp_path / "access.log").read_text() == f'{stamp} p "GET /ping" 200 0.0ms i\n'
    assert (tmp_path / "m.log").read_text() == f"{stamp} 7 stderr printed\n"


def test_each_line_of_an_output_has_its_stamp() -> None:
    lines = OutputFormat("m", "1.0", as_json=False).lines("one\n\ntwo", 7, "stdout", MOMENT)

    assert lines.split("\n") == [f"{stamp_of(MOMENT)} 7 stdout {text}" for text in ("one", "", "two")]


def test_an_output_in_json() -> None:
    lines = OutputFormat("m", "1.0", as_json=True).lines('o"ne\n(2 lines were dropped', 7, "stdout", MOMENT)

    about = {"time": stamp_of(MOMENT), "log": "model", "model": "m", "version": "1.0", "pid": 7, "stream": "stdout"}
    assert [json.loads(line) for line in lines.split("\n")] == [
        about | {"level": "info", "text": 'o"ne'},
        about | {"level": "info", "text": "(2 lines were dropped"},
    ]
    assert json.loads(OutputFormat("m", "1", as_json=True).lines("()", 7, "daemon", MOMENT))["level"] == "warning"
    assert json.loads(json_of({"text": "file-\udcff"})) == {"text": "file-\udcff"}


def test_the_daemons_line_in_json_has_the_fields_of_its_event() -> None:
    line = DaemonFormat(as_json=True).format(
        record("m: ended", level=logging.ERROR, fields={"kind": "worker-exited", "pid": 7})
    )

    assert json.loads(line) == {
        "time": stamp_of(MOMENT), "level": "error", "log": "daemon", "logger": "tsctl.daemon.server",
        "text": "m: ended", "kind": "worker-exited", "pid": 7,
    }  # fmt: skip


def test_a_traceback_is_one_object_and_holds_no_secret() -> None:
    try:
        raise ValueError("https://me:word@host/a.mar?sig=abc")
    except ValueError:
        line = DaemonFormat(as_json=True).format(record("broke off", exc_info=sys.exc_info()))

    assert "\n" not in line and "word" not in line and "sig" not in line
    assert json.loads(line)["text"].startswith("broke off\nTraceback (most recent call last):\n")


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        pytest.param([("Content-Length", "12")], 12, id="a body"),
        pytest.param([("Content-Length", "0" * 5000 + "7")], 7, id="more zeros than numbers have digits"),
        pytest.param([], 0, id="none"),
        pytest.param([("Transfer-Encoding", "chunked")], None, id="chunks, whose number is not kept"),
    ],
)
def test_the_access_line_in_json(headers: list[tuple[str, str]], size: int | None) -> None:
    request = Request("POST", "/predictions/m?a=\x1b", headers, peer="127.0.0.1:4000", id="an-id")

    line = json_line_of(request, 200, 0.01234, "now")

    assert line.isprintable()
    assert json.loads(line) == {
        "time": "now", "level": "info", "log": "access", "client": "127.0.0.1:4000", "method": "POST",
        "path": "/predictions/m?a=\x1b", "status": 200, "ms": 12.3, "requestBytes": size, "request": "an-id",
    }  # fmt: skip


@given(
    target=st.text(st.characters(exclude_categories=["Cs"])),
    request_id=st.text(st.characters(exclude_categories=["Cs"])),
    seconds=st.floats(0, 1e6),
    status=st.integers(100, 599),
)
def test_any_target_and_id_are_read_back_from_the_access_line_in_json(
    target: str, request_id: str, seconds: float, status: int
) -> None:
    request = Request("GET", target, [], peer="127.0.0.1:4000", id=request_id)

    line = json_line_of(request, status, seconds, "now")

    entry = json.loads(line)
    assert (entry["path"], entry["request"], entry["status"]) == (without_secrets(target), request_id, status)
    assert entry["ms"] == pytest.approx(seconds * 1000, abs=0.1)
    assert "\n" not in line
    assert list(entry) == FIELDS, "whether or not a character is escaped"


def test_the_journal_is_the_stream_with_its_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream, (tmp_path / "other").open("w") as other:
        status = os.fstat(stream.fileno())
        named = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}

        assert is_journal(stream.fileno(), named)
        assert not is_journal(other.fileno(), named), "stderr was redirected since"
        assert not is_journal(stream.fileno(), {})
    assert not is_journal(stream_closed := 10**6, named), stream_closed


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3), (logging.CRITICAL, 2)],
)
def test_each_line_in_the_journal_has_its_priority(level: int, priority: int) -> None:
    lines = JournalFormat(logging.Formatter("%(message)s")).format(record("first\nsecond", level=level))

    assert lines == f"<{priority}>first\n<{priority}>second"


def test_the_foreground_of_a_service_is_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "stream").open("w") as stream:
        status = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        monkeypatch.setattr(sys, "stderr", stream)

        log = logs.LineLog(tmp_path / "access.log", "access", foreground=True)
        log.write("one\ntwo")
        log.close()

    assert (tmp_path / "stream").read_text() == "<6>one\n<6>two\n"
    assert (tmp_path / "access.log").read_text() == "one\ntwo\n", "only there"
