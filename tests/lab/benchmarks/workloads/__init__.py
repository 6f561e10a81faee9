"""The workloads for each server, by name."""

from collections.abc import Iterator

from tests.kit.shelf import modules
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.workloads import beside, kill, load
from tests.lab.benchmarks.workloads.workload import BESIDE, CALLS, KILL, LOADS, Workload

_CALLING = modules("workload")  # of an extension whose protocol is called
WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (*LOADS, *([CALLS] if _CALLING else []), BESIDE, KILL)
}


def measure(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (connections, figures), 0 where there are none to choose; raise as the workload's own `run` does."""
    if workload.name == KILL.name:
        yield 0, kill.run(running, served)
    elif workload.name == CALLS.name:
        yield from _CALLING[0].run(running, workload, served)
    elif workload.name == BESIDE.name:
        yield from beside.run(running, workload, served)
    else:
        yield from load.run(running, workload, served)
