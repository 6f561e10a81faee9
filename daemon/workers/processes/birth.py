"""A process that is to be made, and the plain way to make it: exec."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from daemon.workers.engine import WorkerSpec
from daemon.workers.processes.children import Process
from handlers import wire
from handlers.orders import THREAD_VARIABLES, Order


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Make a worker's environment: ours, less the daemon's own settings, with the number of threads."""
    kept = {name: value for name, value in environment.items() if not name.startswith("TSCTL_")}
    return kept | dict.fromkeys(THREAD_VARIABLES, str(threads))


def load_of(spec: WorkerSpec, group: str = "") -> wire.Load:
    """Make the message that tells a worker what to load, and which cgroup to enter."""
    return wire.Load(
        spec.model_name, spec.model_version, str(spec.model_dir), spec.handler,
        dict(spec.manifest), spec.batch_size, spec.threads, spec.gpu_id,
        None if spec.optimize is None else list(spec.optimize), spec.isolate, list(spec.cpus), group,
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class Birth:
    """What a new process gets, and who is told of it.

    Attributes:
        order: for the template that forks it.
        socket: its end of a socketpair, closed here when it has it.
        output: what it prints goes there, closed too.
        born: told once that it is there, or
        failed: told once, with the reason, that it will not be.
        ended: told once that it has ended, if it was born.
        python: the interpreter to exec; None for the daemon's own.
        cancelled: nobody wants it any more, or is told of it.
    """

    order: Order
    socket: socket.socket
    output: int
    born: Callable[[Process], None]
    failed: Callable[[str], None]
    ended: Callable[[], None]
    python: Path | None = None
    cancelled: bool = False

    def close(self) -> None:
        """Close our copies of its descriptors, once."""
        if self.socket.fileno() >= 0:
            self.socket.close()
            os.close(self.output)


def execute(
    module: str,
    sock: socket.socket,
    output: int,
    environment: Mapping[str, str],
    directory: str | None = None,
    python: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `python -P -m MODULE SOCKET DAEMON` in a session of its own, which Ctrl-C at our terminal does not reach.

    Raises:
        OSError: it cannot be started.
    """
    descriptor = sock.fileno()
    return subprocess.Popen(
        # -P: the model's directory is the working directory, and must not come first on sys.path.
        [str(python or sys.executable), "-P", "-m", module, str(descriptor), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(descriptor,),
        start_new_session=True,
        cwd=directory,
        env=environment,
    )
