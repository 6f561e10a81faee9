"""The interface of every benchmarked server: install, start, request, stop."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.environments import make_environment
from tests.lab.benchmarks.measuring import processes
from tests.lab.benchmarks.models import FOLDER, TOLERANCE, Served
from tests.lab.conformance.talk import Answer, talk

START = 120.0  # seconds that a server may take until its first good answer
STOP = 15.0
TRY_EVERY = 0.01
BATCH_SIZE, DELAY = 8, 0.010  # seconds; of everybody alike


class DidNotStart(RuntimeError):
    """A server gives no good answer; the message ends with the last lines of its output."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How a model is to be served, by everybody alike: one worker.

    Attributes:
        folder: an empty directory for what the server writes.
        delay: seconds.
    """

    served: Served
    folder: Path
    batch_size: int
    delay: float


@dataclass(slots=True)
class Running:
    """A server that runs.

    Attributes:
        process: it leads a session of its own; all its workers descend from it.
        target: the path of predictions.
        worker_mark: what is in the command line of a worker and of no other process.
        began: when it was started, on the monotonic clock.
        first_answer: seconds from then until its first good answer.
    """

    process: subprocess.Popen[bytes]
    port: int
    target: str
    output: Path
    worker_mark: str
    began: float
    first_answer: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.target}"

    @property
    def worker(self) -> int:
        """The process id of the only worker: the last of those that look like one.

        Raises:
            LookupError: none does.
        """
        tree = processes.tree(self.process.pid)
        found = [pid for pid in tree if self.worker_mark in processes.command_of(pid)]
        if not found:
            raise LookupError(f"no worker among {[processes.command_of(pid) for pid in tree]}")
        return found[-1]

    def ask(self, body: bytes, patience: float = 30.0) -> Answer:
        """Send one prediction on a connection of its own.

        Raises:
            OSError: nobody listens.
        """
        lines = [f"POST {self.target} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        answer, line = talk(("127.0.0.1", self.port), "\r\n".join((*lines, "", "")).encode() + body, patience)
        line.closed(answer)
        return answer

    def stop(self) -> None:
        """End it with all its processes."""
        pids = processes.tree(self.process.pid)
        for number, patience in ((signal.SIGTERM, STOP), (signal.SIGKILL, STOP)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        for pid in pids:  # workers with a session of their own that outlive it
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            _wait_for_end(pid)


def _wait_for_end(pid: int) -> None:
    """Wait until a killed process has ended, which need not be a child of this one."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            select.select([descriptor], [], [], STOP)
        finally:
            os.close(descriptor)


class Peer(ABC):
    """A server.

    Attributes:
        name: how it is called in options and tables.
        patience: seconds until its first good answer.
        tolerance: of a probability, relative, within which its answers are right.
    """

    name: str
    patience: float = START
    tolerance: float = TOLERANCE

    def lacks(self) -> str:
        """Return what this machine lacks to run this peer; empty if nothing."""
        return ""

    @abstractmethod
    def install(self) -> str:
        """Bring it onto this machine, if it is not there; give its version.

        Raises:
            Missing: that cannot be done.
        """

    def adapt(self, served: Served) -> Served:
        """Return the same model with the requests, and the right answers, of this server."""
        return served.within(self.tolerance)

    @abstractmethod
    def launch(self, setup: Setup) -> Running:
        """Write what the server needs, and start its process; returns at once."""

    @contextlib.contextmanager
    def running(self, served: Served, batch_size: int = BATCH_SIZE, delay: float = DELAY) -> Iterator[Running]:
        """Serve a model, as `adapt` returns it, while the block runs, which begins when it has answered rightly.

        Raises:
            DidNotStart: it does not in time.
        """
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            running = self.launch(Setup(served, Path(folder), batch_size, delay))
            try:
                self._await_answer(running, served)
                running.first_answer = time.monotonic() - running.began
                yield running
            finally:
                running.stop()

    def _await_answer(self, running: Running, served: Served) -> None:
        said = ""
        while time.monotonic() < running.began + self.patience and running.process.poll() is None:
            with contextlib.suppress(OSError):
                answer = running.ask(served.body.read_bytes())
                if answer.status == 200 and served.right(answer.body):
                    return
                said = f"its last answer was {answer.status} {answer.body[:300]!r}\n"
            time.sleep(TRY_EVERY)
        tail = "\n".join(running.output.read_text(errors="replace").splitlines()[-25:])
        raise DidNotStart(f"{self.name} does not answer as it should; {said}{tail}")


def spawn(
    setup: Setup, command: Sequence[str | Path], environment: Mapping[str, str], port: int, target: str, mark: str
) -> Running:
    """Start a server in a session of its own; its output goes to `output.log` in the folder of the set-up.

    Args:
        target, mark: as of `Running`.
    """
    output, began = setup.folder / "output.log", time.monotonic()
    with output.open("wb") as log:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=setup.folder, env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    return Running(process, port, target, output, mark, began)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


class Packaged(Peer):
    """A server of the package index, in an environment of its own.

    Attributes:
        packages: what is installed there; the one of its name tells the version.
    """

    packages: Sequence[str]

    def install(self) -> str:
        program = f"from importlib.metadata import version; print(version({self.name!r}))"
        command = [str(self.python()), "-P", "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def python(self) -> Path:
        """The interpreter of its environment, which is made if it is not there. Raises: Missing."""
        return make_environment(FOLDER / self.name, self.packages)
