"""Process 1 of a container, played by a process that adopts orphans."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PATIENCE = 60.0  # seconds

# Adopts orphans as process 1 does, whatever its number.
INIT = """
import ctypes, os, sys
from tsctl.container.init import supervise
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sys.exit(supervise([sys.executable, "-c", *sys.argv[1:]], os.environ))
"""


def start(program: str) -> subprocess.Popen[str]:
    pipes = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", INIT, program], stdin=pipes, stdout=pipes, text=True)


def finish(process: subprocess.Popen[str], say: str = "") -> tuple[int, str]:
    output, _ = process.communicate(say, timeout=PATIENCE)
    return process.returncode, output


@pytest.mark.parametrize(
    ("program", "code"),
    [
        pytest.param("raise SystemExit(7)", 7, id="the program's own"),
        pytest.param("import os; os.kill(os.getpid(), 9)", 137, id="128 and the signal that ended it"),
    ],
)
def test_the_exit_code(program: str, code: int) -> None:
    assert finish(start(program)) == (code, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_reaches_the_program(number: signal.Signals) -> None:
    process = start(  # blocked, because a signal between a handler's check and `pause` is seen after that only
        f"import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{number}]); print('ready', flush=True);"
        f" signal.sigwait([{number}]); sys.exit(4)"
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"

    process.send_signal(number)

    assert finish(process)[0] == 4


def test_a_signal_before_the_program_listens_ends_it() -> None:
    process = start("import signal; print('ready', flush=True); signal.pause()")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"

    process.send_signal(signal.SIGTERM)

    assert finish(process)[0] == 128 + signal.SIGTERM


def test_an_orphan_is_reaped() -> None:
    # The program forks a child that forks an orphan and ends; the orphan tells its number and ends, too.
    process = start(
        "import os, sys\n"
        "if not os.fork():\n"
        "    if not os.fork():\n"
        "        print(os.getpid(), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "input()\n"
    )
    assert process.stdout is not None
    orphan = int(process.stdout.readline())

    with contextlib.suppress(ProcessLookupError), open(os.pidfd_open(orphan)) as ended:
        assert select.select([ended], [], [], PATIENCE)[0]
    deadline = time.monotonic() + PATIENCE
    while is_zombie(orphan) and time.monotonic() < deadline:
        os.sched_yield()

    assert not is_zombie(orphan)
    assert finish(process, "\n")[0] == 0


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before, or between opening and reading
        return False
