"""A process that is to be made, and the plain way to make it: exec.

Light to import: a daemon that starts makes its first template before it has imported the rest of itself.

Each process has a cgroup of its own, where available: none leaves it, however it forks, and all die at once.

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
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tsctl.daemon.core.machine.cgroups import own_directory
from tsctl.daemon.core.machine.processes import start_of
from tsctl.daemon.workers.cores import seen_by
from tsctl.handlers import wire
from tsctl.handlers.orders import MARK, THREAD_VARIABLES, Order
from tsctl.handlers.own_process import malloc_variables

if TYPE_CHECKING:
    from tsctl.daemon.workers.engine import WorkerSpec
    from tsctl.daemon.workers.processes.output import Pace
    from tsctl.daemon.workers.processes.reaper import Process


def base_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the base of the environment of workers and templates, by which leftovers are known as this daemon's."""
    return {**environment, MARK: str(os.getpid())}


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return a worker's environment: ours, without the daemon's own settings, with the threads' and malloc's.

    CUDA counts GPUs as the daemon does, in the order of the PCI bus; by itself it puts the fastest first.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("TSCTL_")}
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads)) | malloc_variables(kept)
    return kept | variables | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def load_of(spec: "WorkerSpec", group: str = "") -> wire.Load:
    """Return the message that names the model to load, and the cgroup to enter."""
    gpu_id, gpus = seen_by(spec.gpu_ids, spec.gpu_names, alone=spec.group is None and spec.gpus_each == 1)
    return wire.Load(
        spec.model_name, spec.model_version, str(spec.model_dir), spec.handler,
        dict(spec.manifest), spec.batch_size, spec.threads, gpu_id,
        isolate=spec.isolate, cpus=list(spec.cpus), group=group, in_place=spec.in_place, metrics=list(spec.metrics),
        mode=spec.mode, gpus=gpus, **spec.told,
    )  # fmt: skip


class Pipes(NamedTuple):
    """One end of the two pipes of a process's output."""

    stdout: int
    stderr: int

    def close(self) -> None:
        os.close(self.stdout)
        os.close(self.stderr)


def open_pipes() -> tuple[Pipes, Pipes]:
    """Return the reading and the writing ends of two new pipes.

    Raises:
        OSError: there is no descriptor left.
    """
    out, into_out = os.pipe()
    try:
        err, into_err = os.pipe()
    except OSError:
        os.close(out)
        os.close(into_out)
        raise
    return Pipes(out, err), Pipes(into_out, into_err)


def open_channels(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket, Pipes, Pipes]:
    """Return the daemon's and the process's ends of a new socketpair, and both ends of two new pipes.

    Raises:
        OSError: there is no descriptor left.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    try:
        return ours, theirs, *open_pipes()
    except OSError:
        ours.close()
        theirs.close()
        raise


@dataclass(slots=True, eq=False)
class SpawnRequest:
    """The inputs of a new process, and the callbacks for its events.

    Attributes:
        order: for the template that forks the process.
        socket: the process's end of a socketpair, closed here once passed on.
        output: the ends for the process's stdout and stderr, closed, too.
        born: called once when the process exists, or
        failed: called once, with the reason, if there will be none.
        ended: called once when the process has ended, after `born`.
        python: the interpreter to exec; None for the daemon's own.
        cancelled: the process is not wanted any more, and no callback follows.
        waits: why there is no process yet, in words; empty if unknown.
    """

    order: Order
    socket: socket.socket
    output: Pipes
    born: "Callable[[Process], None]"
    failed: Callable[[str], None]
    ended: Callable[[], None]
    python: Path | None = None
    cancelled: bool = False
    waits: str = ""

    def close(self) -> None:
        """Close our copies of the process's descriptors, once."""
        if self.socket.fileno() >= 0:
            self.socket.close()
            self.output.close()


class ProcessSource(Protocol):
    """The maker of workers' processes: templates, or a bridge to a cluster.

    Attributes:
        pace: the turns of all pipes of workers.
        groups: cgroups for workers; None where unavailable.
    """

    pace: "Pace"

    @property
    def groups(self) -> "Cgroups | None": ...

    def make(self, spec: "WorkerSpec", request: SpawnRequest) -> Any:
        """Make a process; return the argument for `done_with` at its end, or None.

        Raises:
            OSError: the process cannot be made.
        """

    def cancel(self, request: SpawnRequest) -> None:
        """Cancel a request whose process does not exist yet."""

    def done_with(self, home: Any) -> None:
        """Note that a process has ended."""


def execute(
    module: str,
    sock: socket.socket,
    output: Pipes,
    environment: Mapping[str, str],
    directory: str | None = None,
    python: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `python -P -m MODULE SOCKET DAEMON` in its own session, which Ctrl-C at our terminal does not reach.

    Raises:
        OSError: the process cannot be started.
    """
    descriptor = sock.fileno()
    return subprocess.Popen(
        # -P: the model's directory is the working directory, and must not come first on sys.path.
        [str(python or sys.executable), "-P", "-m", module, str(descriptor), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output.stdout,
        stderr=output.stderr,
        pass_fds=(descriptor,),
        start_new_session=True,
        cwd=directory,
        env=environment,
    )


class StartedTemplate(NamedTuple):
    """The first template, just exec'd: its process, the daemon's end of its socket, and the ends of its output."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    output: Pipes

    def discard(self) -> None:
        """End the process, which nobody wants."""
        self.socket.close()
        self.output.close()
        self.process.kill()
        self.process.wait()


def start_template(environment: Mapping[str, str]) -> StartedTemplate:
    """Exec the first template.

    Args:
        environment: the base of its environment; see `base_environment`.

    Raises:
        OSError: there is no descriptor or process left.
    """
    ours, theirs, reading, writing = open_channels(socket.SOCK_SEQPACKET)
    try:
        process = execute("tsctl.handlers.template", theirs, writing, worker_environment(environment, 1))
    except OSError:
        ours.close()
        reading.close()
        raise
    finally:
        theirs.close()
        writing.close()
    return StartedTemplate(process, ours, reading)


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

    def remove_all(self) -> None:
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
            Cgroups(folder).remove_all()


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
