"""Start a daemon in the background, and learn whether it listens; without click, as `tsctl.serve` does it, too.

this process ◀─ one JSON object ── daemon (--ready-fd)   it listens, or the reason why not
"""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.lifecycle.start_log import NAME, shorten

START_TIMEOUT = 30.0  # seconds; usually well under one
# -P: ignores a folder named `tsctl` in the user's working directory.
DAEMON = (sys.executable, "-P", "-m", "tsctl.daemon")


class NotStarted(Exception):
    """A daemon could not start; nothing of it runs.

    Attributes:
        hint: the remedy; may be empty.
        details: the last lines that it has printed.
    """

    def __init__(self, message: str, hint: str = "", details: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.details = details


class NotAnswered(NotStarted):
    """A daemon did not listen in its time; the hint names its log."""


def started(
    arguments: Sequence[str],
    state_dir: Path,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    timeout: float = START_TIMEOUT,
) -> "tuple[subprocess.Popen[bytes], dict[str, Any]]":
    """Start the daemon; return its process, and its status document once listening.

    Args:
        descriptors: those that the daemon inherits under the same numbers.
        environment: the daemon's; None for this process's own.
        timeout: seconds, after which it is killed. An exception meanwhile, such as by Ctrl-C, kills it, too.

    Raises:
        NotAnswered: the timeout has passed.
        NotStarted: the message is the daemon's own reason, if it has told one.
    """
    log = _open_log(state_dir)
    log_start = os.fstat(log).st_size
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe:
        try:
            process = subprocess.Popen(
                [*DAEMON, "--background", f"--ready-fd={writing}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=(writing, *descriptors),
                start_new_session=True,  # Ctrl-C is not for the daemon
            )
        except OSError as error:
            raise NotStarted(f"cannot start `{DAEMON[0]}`: {error.strerror}") from None
        finally:
            os.close(writing)
            os.close(log)
        try:
            if not select.select([pipe], [], [], timeout)[0]:
                log_path = _log_path(state_dir)
                message = f"the daemon did not listen within {timeout:g} s"
                raise NotAnswered(message, f"its log is `{log_path}`", _tail(log_path, log_start))
            said = pipe.read()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if not said:
        message = f"the daemon ended with exit code {process.wait()} before it listened"
        raise NotStarted(message, details=_tail(_log_path(state_dir), log_start))
    document: dict[str, Any] = json.loads(said)
    if "error" in document:
        process.wait()
        raise NotStarted(document["error"], document["hint"])
    return process, document


def _log_path(state_dir: Path) -> Path:
    return paths.logs_dir(state_dir) / NAME


def _open_log(state_dir: Path) -> int:
    """Open the file for output that the daemon prints outside its own log; a long one is emptied."""
    try:
        paths.make_private(state_dir, strict=False)
        paths.make_private(paths.logs_dir(state_dir), strict=False)
        log = os.open(_log_path(state_dir), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except paths.PathError as error:
        raise NotStarted(str(error)) from None
    except OSError as error:
        raise NotStarted(f"cannot write `{error.filename}`: {error.strerror}") from None
    with contextlib.suppress(OSError):  # such as a full disk
        shorten(log)
    return log


def _tail(path: Path, start: int, lines: int = 20) -> str:
    with contextlib.suppress(OSError):
        written = path.read_bytes()[start:].decode(errors="replace")
        return "\n".join(written.splitlines()[-lines:])
    return ""
