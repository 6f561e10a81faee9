"""A daemon that belongs to this process, and ends with it: of `tsctl serve`, `tsctl demo` and `tsctl.serve`.

    this process ── writing end of a pipe ──▶ daemon (--parent-fd)   closed by `stop`, or by the kernel after kill -9

After kill -9 the daemon and its workers end, and the folder stays; the next private daemon removes it.
"""

import contextlib
import fcntl
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from tsctl.daemon import paths
from tsctl.starting import NotAnswered, NotStarted, started

TIMEOUT = 60.0  # seconds to start: the user's program may keep all processors busy meanwhile
GRACE = 5.0  # seconds that running requests have at the end
STOP_MARGIN = 10.0  # seconds beyond, after which the daemon is killed
PREFIX = "tsctl-own-"
UNBEGUN = 3600.0  # seconds for which an empty folder may be of a process that has not locked it yet; stopped, perhaps
_RANDOM = 8  # characters that `tempfile.mkdtemp` puts behind
SOCKET = "control.sock"  # in the folder
_STAYS = stat.S_ISVTX  # of a folder's mode: it is not to be removed; a mark that a full disk has room for
_SHORT = Path("/tmp")  # where the folder is if the usual place is too deep for a socket

_ours: weakref.WeakSet["PrivateDaemon"] = weakref.WeakSet()


class PrivateDaemon:
    """A running daemon; `stop` ends it, as do the end of this process and of this object.

    Args:
        arguments: beyond those that make it private.
        socket: the control socket; None for one in the folder.
        environment: the daemon's; None for this process's own.

    Attributes:
        folder: 0700; removed at the end.
        state_dir: within; no models are restored from it, and none stay in it.
        status: the daemon's status document, as it began to listen.

    Raises:
        NotStarted: the daemon does not start; nothing is left of it, but for the log where the hint names that.
    """

    def __init__(
        self, arguments: Sequence[str], socket: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self._lock = _own_folder(for_socket=socket is None)
        self.socket = socket or self.folder / SOCKET
        self.state_dir = self.folder / "state"
        reading, self._pipe = os.pipe()
        ours = (
            f"--socket={self.socket}", f"--state-dir={self.state_dir}", f"--grace={GRACE:g}", f"--parent-fd={reading}"
        )  # fmt: skip
        inherited = (reading, self._lock)  # the lock: after kill -9 the folder is not abandoned while it begins
        try:
            process, self.status = started([*ours, *arguments], self.state_dir, inherited, environment, TIMEOUT)
        except BaseException as error:
            if isinstance(error, NotAnswered):
                self._keep()
            os.close(self._pipe)
            _leave(self._lock, self.folder)
            raise
        finally:
            os.close(reading)
        self._finalizer = weakref.finalize(
            self, _end, os.getpid(), process, self.state_dir / "lock", self._pipe, self._lock, self.folder
        )
        _ours.add(self)

    def stop(self, *, keep: bool = False) -> None:
        """Let running requests finish, and end the daemon and its workers; blocks until then. May be called again.

        Args:
            keep: leave the folder, with the logs.
        """
        try:
            if keep:
                self._keep()
        finally:  # on Ctrl-C, too
            self._finalizer()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):  # it is stopped already, or nothing there can be changed, nor removed
            self.folder.chmod(0o700 | _STAYS)

    def forget(self) -> None:
        """Leave the daemon to the process that started it: this one is a fork of that."""
        if self._finalizer.detach() is not None:
            os.close(self._pipe)
            os.close(self._lock)


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the settings of the user's own daemon, such as its addresses and tokens."""
    return {name: value for name, value in environment.items() if not name.startswith(("TSCTL_", "TS_CONFIG_FILE"))}


def remove_leftovers(directory: Path, now: float) -> None:
    """Remove the folders of processes that were killed, once their daemons have ended: nobody locks them any more.

    Args:
        now: seconds since the epoch.
    """
    for folder in directory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), contextlib.ExitStack() as opened:  # one that lives, a link, a file, or gone
            descriptor = _open_folder(folder)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            ours = status.st_uid == os.getuid() and not status.st_mode & _STAYS
            begun = any(folder.iterdir()) or now - status.st_mtime > UNBEGUN
            if ours and begun and not _locked(folder / "state" / "lock"):
                shutil.rmtree(folder, ignore_errors=True)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _locked(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # a daemon that ends removes its own
        return False
    except BlockingIOError:
        return True
    return False


def _own_folder(*, for_socket: bool) -> tuple[Path, int]:
    """Make a folder, and remove those that killed processes have left; return it, and a descriptor that locks it.

    Args:
        for_socket: the path must be short enough for one.
    """
    hint = "name a writable folder in the variable TMPDIR"
    try:
        place = usual = Path(tempfile.gettempdir())
        if for_socket and not _has_room_for_socket(usual):
            place, hint = _SHORT, f"name a folder with a shorter path than `{usual}` in the variable TMPDIR"
        for directory in {usual, _SHORT}:
            remove_leftovers(directory, time.time())
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))  # 0700
        lock = _open_folder(folder)
    except OSError as error:
        raise NotStarted(f"cannot make a temporary folder: {error.strerror}", hint) from None
    with contextlib.suppress(OSError):  # NFS locks no folders; there, none is removed by another process
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _has_room_for_socket(directory: Path) -> bool:
    """Return whether the path of a socket in a folder there is short enough for the kernel."""
    try:
        paths.check_socket_path(directory / f"{PREFIX}{'x' * _RANDOM}" / SOCKET)
    except paths.PathError:
        return False
    return True


def _end(owner: int, process: "subprocess.Popen[bytes]", daemon_lock: Path, pipe: int, lock: int, folder: Path) -> None:
    if os.getpid() != owner:
        return
    pid = process.pid
    with contextlib.suppress(OSError, ValueError):
        # An upgrade has changed it. The pid file beside the socket may be another daemon's, if ours has ended.
        pid = int(daemon_lock.read_text()) if _locked(daemon_lock) else pid
    os.close(pipe)
    try:
        if pid != process.pid:
            _await_end(pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE + STOP_MARGIN)
    finally:  # on Ctrl-C, too
        process.kill()
        process.wait()
        _leave(lock, folder)


def _await_end(pid: int) -> None:
    """Wait for the end of a daemon that is no child of ours; kill it after its time, and on Ctrl-C."""
    with contextlib.suppress(ProcessLookupError), open(os.pidfd_open(pid), "rb", 0) as daemon:
        try:
            select.select([daemon], [], [], GRACE + STOP_MARGIN)
        finally:
            signal.pidfd_send_signal(daemon.fileno(), signal.SIGKILL)


def _leave(lock: int, folder: Path) -> None:
    if not os.fstat(lock).st_mode & _STAYS:
        shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _forked() -> None:
    for each in list(_ours):
        each.forget()
    _ours.clear()


os.register_at_fork(after_in_child=_forked)
