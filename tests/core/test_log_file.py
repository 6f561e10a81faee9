"""A log file that cannot be written costs its lines, tells that once, and tells how many when it recovers."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tsctl.daemon.core import logs


def test_a_log_that_cannot_be_written_costs_its_lines_and_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.LineLog(Path("/dev/full"), "access", foreground=False)

    for _ in range(3):
        log.write("there is no space for this")
    log.close()

    assert capsys.readouterr().err == "cannot write `/dev/full`: No space left on device; its lines are lost\n"


def test_the_first_lost_line_of_a_log_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    losses: list[str] = []
    logs.report_losses(losses.append)
    log = logs.LineLog(Path("/dev/full"), "access", foreground=False)

    for _ in range(3):
        log.write("there is no space for this")
    log.close()
    logs.report_losses(lambda sentence: None)

    assert losses == ["cannot write `/dev/full`: No space left on device; its lines are lost"]
    assert capsys.readouterr().err.count("its lines are lost") == 1


@pytest.fixture
def written(tmp_path: Path) -> logs.LineLog:
    """A log in a directory that does not exist yet."""
    return logs.LineLog(tmp_path / "logs" / "m.log", "model", foreground=False)


def test_a_log_that_can_be_written_again_says_how_much_is_missing(
    written: logs.LineLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written.write("lost")
    written.write("lost\ntoo")

    (tmp_path / "logs").mkdir()
    written.write("there")
    written.write("still there")
    written.close()

    told, *rest = (tmp_path / "logs" / "m.log").read_text().splitlines()
    assert re.fullmatch(r"\S+ WARNING \(3 lines could not be written here\)", told), "before the first that can"
    assert rest == ["there", "still there"]
    assert capsys.readouterr().err.count("No such file or directory") == 1


def test_each_loss_is_told_but_on_stderr_once_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses: list[str] = []
    logs.report_losses(losses.append)
    log = logs.LineLog(tmp_path / "logs" / "m.log", "model", foreground=False)
    for _ in range(3):
        log.write("lost")
        (tmp_path / "logs").mkdir()
        log.write("there")
        log.close()
        (tmp_path / "logs" / "m.log").unlink()
        (tmp_path / "logs").rmdir()
    logs.report_losses(lambda sentence: None)

    assert len(losses) == 3
    assert capsys.readouterr().err.count("its lines are lost") == 1


def test_the_remark_of_a_log_in_json_is_json(tmp_path: Path) -> None:
    log = logs.LineLog(tmp_path / "logs" / "access.log", "access", foreground=False, as_json=True)
    log.write("{}")

    (tmp_path / "logs").mkdir()
    log.write("{}")
    log.close()

    told = json.loads((tmp_path / "logs" / "access.log").read_text().splitlines()[0])
    assert told.pop("time")
    assert told == {"level": "warning", "log": "access", "text": "(1 line could not be written here)"}


def test_a_disk_that_fills_within_a_line_glues_nothing_to_it(tmp_path: Path) -> None:
    """The limit stands for the disk: a write that reaches it is cut, and the next one fails."""
    path = tmp_path / "m.log"
    log = logs.LineLog(path, "model", foreground=False)
    log.write("x" * 99)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150, before[1]))  # Python ignores SIGXFSZ
    try:
        log.write("y" * 99)
        log.write("z" * 99)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    log.write("there")
    log.close()

    whole, torn, told, last = path.read_text().splitlines()
    assert (whole, torn, last) == ("x" * 99, "y" * 50, "there")
    assert told.endswith("WARNING (2 lines could not be written here)")


def test_a_line_that_a_crash_has_torn_stays_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.log"
    path.write_text("whole\nto")

    log = logs.LineLog(path, "model", foreground=False)
    log.write("next")
    log.close()

    assert path.read_text() == "whole\nto\nnext\n"


LATIN = """
import sys
from pathlib import Path
from tsctl.daemon.core import logs
log = logs.LineLog(Path(sys.argv[1]), "model", foreground=False)
log.write("caf\\u00e9 \\u2192 \\udcff")
log.close()
"""


def test_a_log_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    path = tmp_path / "m.log"
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # then it is ASCII

    subprocess.run([sys.executable, "-c", LATIN, str(path)], env=environment, check=True)

    assert path.read_bytes() == "café → \\udcff\n".encode(), "and what is no text stays readable"
