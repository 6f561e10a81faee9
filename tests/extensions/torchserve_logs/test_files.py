"""TorchServe's log files are there from the start, get their lines in the same turn, and cost nothing when off."""

import logging
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.clock import FakeClock
from tsctl.daemon.extensions.torchserve_logs.files import DaemonLines, TorchServeFile

MOMENT = 1_900_000_000.5  # seconds since the epoch
STAMP = "2030-03-17T18:46:40,500"  # of it in Berlin


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_file_is_there_before_its_first_line_and_is_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ts_log.log"

    before = os.umask(0)
    try:
        TorchServeFile(path, FakeClock(), bare=False).close()
    finally:
        os.umask(before)

    assert path.read_text() == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_lines_of_a_turn_are_written_at_its_end(tmp_path: Path) -> None:
    clock = FakeClock()
    file = TorchServeFile(tmp_path / "a.log", clock, bare=False, time_now=lambda: MOMENT)

    file.write("INFO", "main", "ACCESS_LOG", "one")
    file.write("WARN", "main", "ACCESS_LOG", "two")
    before = (tmp_path / "a.log").read_text()
    clock.settle()
    settled = (tmp_path / "a.log").read_text()
    file.close()

    assert (before, settled) == ("", f"{STAMP} [INFO ] main ACCESS_LOG - one\n{STAMP} [WARN ] main ACCESS_LOG - two\n")


def test_the_remaining_lines_are_written_when_the_files_are_closed(tmp_path: Path) -> None:
    file = TorchServeFile(tmp_path / "m.log", FakeClock(), bare=True)

    file.write("INFO", "main", "TS_METRICS", "last")
    file.close()

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} - last\n", (tmp_path / "m.log").read_text())


def test_a_file_that_cannot_be_written_loses_its_lines_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("a file, and no directory")
    clock = FakeClock()
    file = TorchServeFile(tmp_path / "taken" / "a.log", clock, bare=False)

    file.write("INFO", "main", "ACCESS_LOG", "one")
    clock.settle()

    assert "a.log`: Not a directory; its lines are lost" in capsys.readouterr().err


def test_the_daemons_own_lines_have_log4js_levels_and_no_secrets(tmp_path: Path) -> None:
    clock = FakeClock()
    file = TorchServeFile(tmp_path / "ts_log.log", clock, bare=False, time_now=lambda: MOMENT)
    lines = DaemonLines(file, clock.soon)

    lines.handle(logging.LogRecord("daemon.x", logging.WARNING, "", 0, "from https://u:p@host/m.mar", None, None))
    clock.settle()
    file.close()

    assert (tmp_path / "ts_log.log").read_text() == f"{STAMP} [WARN ] main daemon.x - from https://host/m.mar\n"
