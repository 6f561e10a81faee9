"""Lines reach their files: the daemon's at once, the access log's in batches, each model's in its own."""

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.kit.said import said_in
from tsctl.daemon import paths
from tsctl.daemon.api.access_log import AccessLog, line_of
from tsctl.daemon.core import logs
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.logs import LineLog
from tsctl.daemon.http.messages import Request

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
TIMED = re.compile(rf"^{STAMP} (.*)\n", re.MULTILINE)


@pytest.fixture
def daemon_logger() -> Iterator[logging.Logger]:
    """The logger that `set_up` changes, as it was before when the test is over."""
    logger = logging.getLogger("tsctl.daemon")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    yield logger
    for handler in logger.handlers:
        handler.close()
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


@pytest.mark.usefixtures("daemon_logger")
@pytest.mark.parametrize("foreground", [False, True])
def test_the_daemon_logs_into_the_state_directory_and_shows_it_in_the_foreground(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], foreground: bool
) -> None:
    paths.make_private(paths.logs_dir(tmp_path), strict=False)
    logs.set_up(paths.daemon_log(tmp_path), "debug" if foreground else "info", foreground=foreground)

    log = logging.getLogger("tsctl.daemon.server")
    log.info("registered %s from %s", "m", "https://me:word@host/a.mar?sig=abc")
    log.debug("too much")

    lines = ["INFO    registered m from https://host/a.mar?…", *["DEBUG   too much"] * foreground]
    assert TIMED.findall(paths.daemon_log(tmp_path).read_text()) == lines
    assert TIMED.findall(capsys.readouterr().err) == lines * foreground


@dataclass
class Access:
    clock: FakeClock
    log: AccessLog
    file: Path


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    clock, file = FakeClock(), tmp_path / "access.log"
    log = AccessLog(file, clock, foreground=False)
    yield Access(clock, log, file)
    log.close()


def test_access_lines_are_written_half_a_second_after_the_first_and_at_the_close(access: Access) -> None:
    access.log.add_line("one")
    access.clock.advance(0.4)
    access.log.add_line("GET /%s%d 200")
    assert not access.file.exists()

    access.clock.advance(0.11)

    assert access.file.read_text() == "one\nGET /%s%d 200\n"
    access.log.add_line("last")
    access.log.close()
    access.clock.advance(1.0)
    assert access.file.read_text() == "one\nGET /%s%d 200\nlast\n", "once"


def test_many_access_lines_are_written_at_once(access: Access) -> None:
    for number in range(375):
        access.log.add_line(str(number))

    assert access.file.read_text().splitlines() == [str(number) for number in range(250)]


def test_a_busy_log_keeps_one_timer(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(LineLog, "write", lambda log, text: written.append(text.count("\n") + 1))
    for _ in range(2000):
        access.log.add_line("line")
        access.clock.advance(0.001)  # a batch of 250 in 0.25 s: two of them until the first one's time has passed

    assert len(written) <= 2000 / 250 + 2000 * 0.001 / 0.5


def test_a_full_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 20)
    log = AccessLog(tmp_path / "access.log", FakeClock(), foreground=False)

    for line in ("first line", "second line"):
        log.add_line(line)
        log.flush()
    log.close()

    assert (tmp_path / "access.log").read_text() == "second line\n"
    assert (tmp_path / "access.log.1").read_text() == "first line\n"


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        pytest.param("/predictions/m?a=1", "/predictions/m?a=1", id="as it came"),
        pytest.param("/\x1b[2J\xe9", "/\\x1b[2J\\xe9", id="but for what does not print"),
        pytest.param(
            "/models?url=https%3A%2F%2Fhost%2Fa.mar%3Fsig%3Dabc", "/models?url=https%3A%2F%2Fhost%2Fa.mar?…", id="s"
        ),
        pytest.param("/models?url=HTTPS://host/a.mar?sig=abc", "/models?url=HTTPS://host/a.mar?…", id="in capitals"),
    ],
)
def test_the_line_of_a_request(target: str, shown: str) -> None:
    request = Request("POST", target, [], peer="127.0.0.1:4000", id="an-id")

    line = line_of(request, 200, 0.0123, "2030-01-02T03:04:05")

    assert line == f'2030-01-02T03:04:05 127.0.0.1:4000 "POST {shown}" 200 12.3ms an-id'


@said_in("secrets.txt")
def test_what_may_open_something_is_left_out_of_urls(given: str) -> str:
    return logs.without_secrets(given)


@pytest.mark.parametrize("mask", [0, 0o177])
def test_a_log_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    log = logs.LineLog(tmp_path / "m.log", "model", foreground=False)
    before = os.umask(mask)
    try:
        log.write("a line")
    finally:
        os.umask(before)
    log.close()

    assert (tmp_path / "m.log").stat().st_mode & 0o777 == 0o600


class Versions:
    """The logs of the models in one state directory."""

    def __init__(self, state: Path, *, foreground: bool = False) -> None:
        self.state = state
        self.logs = logs.ModelLogs(partial(paths.model_log, state), foreground=foreground)
        paths.logs_dir(state).mkdir()

    def print(self, version: str, line: str) -> None:
        """Do what happens when version `version` of `m` is registered, prints a line and goes."""
        self.logs.open("m", version)(line, 4711, "stdout")
        self.logs.close("m", version)

    def printed(self, version: str) -> str:
        return paths.model_log(self.state, "m", version).read_text()


def test_each_version_has_its_own_file(tmp_path: Path) -> None:
    versions = Versions(tmp_path)

    versions.print("1.0", "from one")
    versions.print("2.0", "from two")
    versions.print("2.0", "registered again")
    assert versions.logs.open("m", "3.0") == versions.logs.open("m", "3.0")

    assert TIMED.findall(versions.printed("1.0")) == ["4711 stdout from one"]
    assert TIMED.findall(versions.printed("2.0")) == ["4711 stdout from two", "4711 stdout registered again"]


def test_a_version_without_output_has_no_file(tmp_path: Path) -> None:
    versions = Versions(tmp_path)

    versions.logs.open("m", "1.0")
    versions.logs.close("m", "1.0")
    versions.logs.close("m", "never opened")

    assert list(paths.logs_dir(tmp_path).iterdir()) == []


def test_a_models_lines_are_shown_in_the_foreground(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Versions(tmp_path, foreground=True).print("1.0", "loading weights")

    assert TIMED.findall(capsys.readouterr().err) == ["m/1.0 4711 stdout loading weights"], "with the model's name"
    plain = logs.ModelLogs(partial(paths.model_log, tmp_path), foreground=True, plain=True)  # of a tool
    plain.open("m", "1.0")("loading\nweights", 4711, "stdout")
    plain.close("m", "1.0")
    assert capsys.readouterr().err == "loading\nweights\n"
