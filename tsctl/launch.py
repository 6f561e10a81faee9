"""Start the daemon in the background, and stop it.

`start` is `run` in the background plus a handshake: the daemon writes one JSON object to an inherited pipe as soon as
the daemon listens or fails.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.errors import CliError

ROTATED_BYTES = 1_000_000  # size of `start.log` at which the next start rotates the file
KEPT_FILES = 5
START_TIMEOUT = 30.0  # seconds; usually well under one
# -P: ignores a folder named `tsctl` in the user's working directory.
DAEMON = (sys.executable, "-P", "-m", "tsctl.daemon")


def start(arguments: Sequence[str], state_dir: Path, descriptors: Sequence[int] = ()) -> dict[str, Any]:
    """Start the daemon; return its status document once listening.

    Args:
        descriptors: those that the daemon inherits under the same numbers.

    Raises:
        CliError: the daemon could not start; the message is its own reason.
    """
    log = _open_log(state_dir)
    log_start = os.fstat(log).st_size
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [*DAEMON, "--background", f"--ready-fd={writing}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing, *descriptors),
            start_new_session=True,
        )
    finally:
        os.close(writing)
        os.close(log)
    with os.fdopen(reading, "rb") as pipe:
        if not select.select([pipe], [], [], START_TIMEOUT)[0]:
            process.kill()
            raise CliError(
                f"the daemon did not listen within {START_TIMEOUT:g} s", f"its log is `{_log_path(state_dir)}`"
            )
        said = pipe.read()
    if not said:
        code = process.wait()
        raise CliError(
            f"the daemon ended with exit code {code} before it listened", details=_tail(_log_path(state_dir), log_start)
        )
    document: dict[str, Any] = json.loads(said)
    if "error" in document:
        process.wait()
        raise CliError(document["error"], document["hint"])
    return document


def await_models(client: DaemonClient, tick: Callable[[float], None], patience: float = START_TIMEOUT) -> list[str]:
    """Wait until the models of the start are registered, or could not be; their workers may still be loading.

    Args:
        tick: called with the seconds to wait between two questions.
        patience: seconds.

    Returns:
        The names of those that are still being unpacked or downloaded when the patience ends; empty for one whose name
        is not known yet.
    """
    pause = 0.02
    while True:
        waiting: list[str] = client.json("GET", "/tsctl/status").get("registering", [])
        if not waiting or patience <= 0:
            return waiting
        tick(pause)
        patience -= pause
        pause = min(2 * pause, 0.25)


def run(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the daemon, whose exit code becomes this command's."""
    os.execv(DAEMON[0], [*DAEMON, *arguments])


def stop(pid: int, wait: float, tick: Callable[[], None]) -> None:
    """Ask the daemon to stop, and wait for its end.

    Args:
        pid: reported by the daemon itself.
        wait: seconds; the daemon's grace time and a margin.
        tick: called every tenth of a second.

    Raises:
        CliError: the user may not signal the daemon, or the daemon did not end in time.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        deadline = time.monotonic() + wait
        while not select.select([descriptor], [], [], 0.1)[0]:
            tick()
            if time.monotonic() > deadline:
                raise CliError(f"the daemon with pid {pid} did not stop within {wait:g} s", f"`kill -9 {pid}` ends it")
    except PermissionError:
        raise CliError(f"not allowed to stop the daemon with pid {pid}") from None
    finally:
        os.close(descriptor)


def _log_path(state_dir: Path) -> Path:
    return paths.logs_dir(state_dir) / "start.log"


def _open_log(state_dir: Path) -> int:
    """Open the file for output that the daemon prints outside its own log."""
    try:
        paths.make_private(state_dir, strict=False)
        paths.make_private(paths.logs_dir(state_dir), strict=False)
        _rotate(_log_path(state_dir))
        return os.open(_log_path(state_dir), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except paths.PathError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"cannot write `{error.filename}`: {error.strerror}") from None


def _rotate(log: Path) -> None:
    """Rename a long log, and the older ones after it: `start.log.1` is the newest of them."""
    with contextlib.suppress(FileNotFoundError):  # there is none, or another start is renaming the files
        if log.stat().st_size < ROTATED_BYTES:
            return
        for number in range(KEPT_FILES - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{log}.{number}", f"{log}.{number + 1}")
        os.replace(log, f"{log}.1")


def _tail(path: Path, start: int, lines: int = 20) -> str:
    with contextlib.suppress(OSError):
        written = path.read_bytes()[start:].decode(errors="replace")
        return "\n".join(written.splitlines()[-lines:])
    return ""
