"""`tsctl demo`: what it promises, and what it leaves behind however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, TSCTL, eventually, running
from tsctl.private_daemon import PREFIX

# The same demo, but of a model whose requests are not repeated: those of a killed worker fail.
WITHOUT_RETRY = """
from tsctl.showcase.measuring import REGISTRATION
REGISTRATION["retry"] = "false"
from tsctl.cli import main
main(["demo"], prog_name="tsctl")
"""


def demo(folder: Path, command: Sequence[str | Path] = (TSCTL, "demo")) -> "subprocess.Popen[str]":
    environment = os.environ | {"TMPDIR": str(folder), "NO_COLOR": "1", "TSCTL_SOCKET": "/nowhere/of/the/user's.sock"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pid_of_daemon(folder: Path) -> int:
    """Wait for the demo's daemon, and return its pid."""
    eventually(lambda: any(folder.glob(f"{PREFIX}*/control.pid")), "the demo starts a daemon")
    file = next(folder.glob(f"{PREFIX}*/control.pid"))
    eventually(lambda: file.read_text() != "", "the daemon writes its pid")
    return int(file.read_text())


def test_batching_pays_and_no_request_fails(tmp_path: Path) -> None:
    said, gaps, last = [], [], time.monotonic()
    with demo(tmp_path) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            said.append(line)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()
        errors = process.stderr.read()
    text = "".join(said)

    assert process.returncode == 0, errors
    ratio = re.search(r"([\d.]+) ×", text)
    assert ratio is not None and float(ratio[1]) > 1.5, text
    assert len(re.findall(r"^  0:\d\d  .*: .*\d+ → \d+, serves after [\d.]+ s$", text, re.MULTILINE)) == 3, text
    assert re.search(r"answered [1-9][\d ]*   failed 0$", text, re.MULTILINE), text
    assert re.search(r"EfficientNet-Lite0 sees it: palace 0\.\d+, |pip install 'tsctl\[demo\]'$", text, re.MULTILINE), (
        text
    )
    assert [line.split()[0] for line in said[-3:]] == ["tsctl", "tsctl", "curl"]
    assert "{" not in text
    assert max(gaps) < 8, "the longest silence; on a busy machine four times the promised two seconds"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_request_is_counted_and_is_exit_code_1(tmp_path: Path) -> None:
    process = demo(tmp_path, (sys.executable, "-c", WITHOUT_RETRY))
    said, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert re.search(r"failed [1-9]", said), said
    assert re.search(r"error: \d+ of \d+ requests failed: \d+ × status 5\d\d", errors), errors
    logs = re.search(r"hint: the logs are in `(.*)`", errors)
    assert logs is not None and (Path(logs[1]) / "daemon.log").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything(tmp_path: Path, number: int) -> None:
    process = demo(tmp_path)
    daemon = pid_of_daemon(tmp_path)
    assert process.stdout is not None
    while "measuring" not in process.stdout.readline():
        assert process.poll() is None

    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    assert "error: interrupted: the private daemon has been stopped" in errors
    assert not running(daemon)
    assert list(tmp_path.iterdir()) == []
