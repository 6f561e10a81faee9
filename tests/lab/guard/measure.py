"""Both daemons in turns: the processor time of the daemon's process alone for a request of the constant answer."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab.benchmarks import models
from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.measuring.processes import used_by
from tests.lab.benchmarks.peers.ours import Ours
from tests.lab.benchmarks.peers.peer import Running, Setup

CONNECTIONS = 32
SIZE = 100  # bytes of a request
SECONDS = 2.0
WARM_UP = 3.0


class Built(Ours):
    """A daemon of one of the wheels."""

    def __init__(self, python: Path) -> None:
        super().__init__()
        self._python = python


class WrongAnswers(RuntimeError):
    """Requests failed, so that their cost is that of something else."""


def is_compiled(python: Path) -> bool:
    """Return whether the modules of a request are compiled in this environment."""
    program = "import tsctl.daemon.http.connection as module; print(module.__file__)"
    done = subprocess.run([python, "-P", "-c", program], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().endswith(".so")


@contextmanager
def started(python: Path, served: models.Served) -> Iterator[Running]:
    """Run a daemon beside the block."""
    with tempfile.TemporaryDirectory(prefix="tsctl-guard-") as folder:
        running = Built(python).start(Setup(served, Path(folder)))
        try:
            yield running
        finally:
            running.stop()


def cost(running: Running, served: models.Served, seconds: float) -> float:
    """Return the seconds of user and system time that the daemon's process takes for a request.

    Raises:
        WrongAnswers: a request failed.
    """
    before = used_by(running.process.pid)
    found = wrk.run(running.url, [served.body], CONNECTIONS, seconds)
    used = used_by(running.process.pid).since(before)
    if found.errors or not found.requests:
        raise WrongAnswers(f"{found.errors} of {found.requests} requests failed")
    return used.cpu / found.requests


def in_turns(baseline: Path, ours: Path, pairs: int) -> Iterator[tuple[float, float]]:
    """Yield (baseline, ours) in seconds for a request; each pair begins with the other one.

    Args:
        baseline, ours: the interpreters.
    """
    served = models.constant(SIZE)
    with ExitStack() as stack:
        both = [stack.enter_context(started(python, served)) for python in (baseline, ours)]
        for running in both:
            cost(running, served, WARM_UP)
        for number in range(pairs):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {index: cost(both[index], served, SECONDS) for index in order}
            yield found[0], found[1]
