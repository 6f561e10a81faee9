"""A cgroup for each worker, where available: no process leaves it, however it forks, and all die at once.

    our own cgroup/                           the daemon stays here, and so does a daemon that replaces it
        tsctl-NAMESPACE-PID-START/            one for each daemon, named so that the next one knows whether it lives
            1/  2/  …                         one for each worker

This needs cgroup v2 with `cgroup.kill` (Linux 5.14) in a directory that this user may write: as root, under
`systemd-run --user`, in a service with `Delegate=yes`. Elsewhere there are no cgroups, and leftovers.py does its best.
Workers enter their cgroups themselves, before any code of a handler: the kernel takes milliseconds for that.
"""

import contextlib
import itertools
import os
import time
from pathlib import Path

from tsctl.daemon.core.machine.cgroups import own_directory
from tsctl.daemon.core.machine.processes import start_of

_PREFIX = "tsctl"
_PATIENCE = 1.0  # seconds that killed processes have to disappear, at the stop


class Cgroups:
    """The cgroups of one daemon's workers.

    Args:
        folder: of this daemon; exists, and is empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._left: set[Path] = set()  # killed, and not removed yet

    def __repr__(self) -> str:
        return f"<Cgroups {self._folder}>"

    @classmethod
    def open(cls, here: Path | None = None) -> "Cgroups | None":
        """Create this daemon's cgroup, and kill the leftovers of ended daemons; None if cgroups are unavailable.

        Args:
            here: this process's cgroup; by default read from /proc.
        """
        here = own_directory() if here is None else here
        if here is None or not os.access(here / "cgroup.procs", os.W_OK):
            return None
        try:
            namespace = os.stat("/proc/self/ns/pid").st_ino
            clear(here, namespace)
            folder = here / f"{_PREFIX}-{namespace}-{os.getpid()}-{start_of(os.getpid())}"
            folder.mkdir(exist_ok=True)
        except OSError:
            return None
        if (folder / "cgroup.kill").exists():
            return cls(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None

    def make(self) -> str:
        """Create a cgroup for one worker; return its directory, or an empty string on failure."""
        self._remove_left()
        group = self._folder / str(next(self._numbers))
        try:
            group.mkdir()
        except OSError:
            return ""
        return str(group)

    def kill(self, group: str) -> None:
        """Kill all processes in a worker's cgroup, and remove the cgroup when they have ended."""
        if group:
            _kill(Path(group))
            self._left.add(Path(group))
            self._remove_left()

    def end(self) -> None:
        """Kill all processes, and remove all cgroups. Blocks until that is done, at most a second."""
        _kill(self._folder)
        deadline = time.monotonic() + _PATIENCE
        while not _removed(self._folder) and time.monotonic() < deadline:
            time.sleep(0.005)

    def _remove_left(self) -> None:
        for group in list(self._left):
            with contextlib.suppress(OSError):  # something in it is still dying
                group.rmdir()
                self._left.remove(group)


def clear(here: Path, namespace: int) -> None:
    """Kill and remove the cgroups of daemons that ended without doing so: by `kill -9`, most likely."""
    for folder in here.glob(f"{_PREFIX}-{namespace}-*-*"):
        pid, _, start = folder.name.removeprefix(f"{_PREFIX}-{namespace}-").partition("-")
        if pid.isdigit() and start.isdigit() and start_of(int(pid)) != int(start):
            Cgroups(folder).end()


def _kill(group: Path) -> None:
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")


def _removed(folder: Path) -> bool:
    """Remove a cgroup and those in it, as far as they are empty; return whether it has gone."""
    with contextlib.suppress(OSError):
        for group in folder.iterdir():
            if group.is_dir():
                with contextlib.suppress(OSError):
                    group.rmdir()
        folder.rmdir()
    return not folder.exists()
