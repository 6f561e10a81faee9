"""A daemon that belongs to this process: a socket in a 0700 folder, no TCP, and the same end.

    this process ── writing end of a pipe ──▶ daemon (--parent-fd)   closed by `stop`, or by the kernel after kill -9
                 ◀─ one JSON object ───────── daemon (--ready-fd)    it listens, or the reason why not

After kill -9 the daemon and its workers end, and the folder stays; the next `serve` removes it.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.python.errors import ServeFailed

GRACE = 5.0  # seconds that running requests have at the end
START_TIMEOUT = 60.0  # seconds; usually half a second
STOP_MARGIN = 10.0  # seconds, after which the daemon is killed
PREFIX = "tsctl-python-"  # not that of the command `tsctl serve`, which removes its own by other signs of life
_LOCK = "owner"

_ours: weakref.WeakSet["OwnedDaemon"] = weakref.WeakSet()


class OwnedDaemon:
    """A running daemon; `stop` ends it, as do the end of this process and of this object.

    Attributes:
        folder: 0700; removed at the end.
        socket: the control socket.
        pid: the daemon's.

    Raises:
        ServeFailed: the daemon does not start.
    """

    def __init__(self) -> None:
        remove_leftovers(Path(tempfile.gettempdir()))
        self.folder = _make_folder()
        self.socket = self.folder / "control.sock"
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        reading, self._parent = os.pipe()
        try:
            process, said = _start(self.folder, reading)
        except BaseException:
            os.close(self._parent)
            os.close(self._lock)
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            os.close(reading)
        self.pid = process.pid
        descriptors = [self._parent, self._lock]
        self._finalizer = weakref.finalize(self, _end, os.getpid(), descriptors, process, self.folder)
        self._descriptors = descriptors
        _ours.add(self)
        if "error" in said:
            self.stop()
            raise ServeFailed(f"the daemon did not start: {said['error']}")

    def stop(self) -> None:
        """Let running requests finish, end the daemon and its workers, and remove the folder. Blocks until then."""
        self._finalizer()

    def forget(self) -> None:
        """Leave the daemon to the process that started it: this one is a fork of that."""
        self._finalizer.detach()
        while self._descriptors:
            os.close(self._descriptors.pop())


def remove_leftovers(directory: Path) -> None:
    """Remove the folders of processes that were killed, once their daemons have ended."""
    for folder in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink() and _abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _abandoned(folder: Path) -> bool:
    """Return whether neither the process that made a folder nor its daemon lives: each holds a lock."""
    if not (folder / _LOCK).exists():
        return False  # it is being made
    return all(_free(file) for file in (folder / _LOCK, folder / "state" / "lock") if file.exists())


def _free(file: Path) -> bool:
    with open(file, "rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # 0700
    try:
        paths.check_socket_path(folder / "control.sock")
    except paths.PathError:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
    return folder


def _start(folder: Path, parent: int) -> "tuple[subprocess.Popen[bytes], dict[str, Any]]":
    """Start the daemon; return its process, and what it said when it listened or failed."""
    ready, told = os.pipe()
    arguments = [
        "--background",
        f"--parent-fd={parent}",
        f"--ready-fd={told}",
        f"--socket={folder / 'control.sock'}",
        f"--state-dir={folder / 'state'}",
        "--inference-address=none",
        "--restore=false",
        "--access-log=false",
        "--template=false",  # a few workers of one model: each imports what it needs
        f"--grace={GRACE:g}",
    ]
    log = folder / "start.log"
    with open(ready, "rb") as said, open(log, "wb") as printed:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tsctl.daemon", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=own_environment(os.environ),
                pass_fds=(parent, told),
                start_new_session=True,  # Ctrl-C is for this process, which then ends the daemon
            )
        except OSError as error:
            raise ServeFailed(f"cannot start `{sys.executable}`: {error.strerror}") from None
        finally:
            os.close(told)
        text = said.read() if select.select([said], [], [], START_TIMEOUT)[0] else b""
    if text:
        document: dict[str, Any] = json.loads(text)
        return process, document
    process.kill()
    process.wait()
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise ServeFailed(f"the daemon did not listen within {START_TIMEOUT:g} s, or ended before:\n{tail}")


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the settings of the user's own daemon, such as its addresses and tokens."""
    return {name: value for name, value in environment.items() if not name.startswith(("TSCTL_", "TS_CONFIG_FILE"))}


def _end(owner: int, descriptors: list[int], process: "subprocess.Popen[bytes]", folder: Path) -> None:
    if os.getpid() != owner:
        return
    os.close(descriptors.pop(0))  # the pipe
    try:
        process.wait(GRACE + STOP_MARGIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    while descriptors:
        os.close(descriptors.pop())
    shutil.rmtree(folder, ignore_errors=True)


def _forked() -> None:
    for each in list(_ours):
        each.forget()
    _ours.clear()


os.register_at_fork(after_in_child=_forked)
