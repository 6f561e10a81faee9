"""What a request costs beside the least that it could: `python -m tests.lab.benchmarks.layers.ceilings [TURNS]`.

The constant answer, all servers in turns in one run: servers without any feature (bare.py), with several ways to wake
a worker, the daemon compiled as a wheel installs it, and mosec. Processor time of the server's first process, and of
all others (workers; all of mosec's work is in a child). Machines differ by a third: compare the servers of one run.
"""

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.lab.benchmarks import models
from tests.lab.benchmarks.environments import ROOT
from tests.lab.benchmarks.layers import bare
from tests.lab.benchmarks.measuring import processes, wrk
from tests.lab.benchmarks.peers import PEERS
from tests.lab.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn
from tests.lab.benchmarks.streams.cpu import used_by

CONNECTIONS = (8, 32)
SECONDS = 1.5
WARM_UP = 2.5
TURNS = 7


class Bare(Peer):
    """A server without features; it needs no installation."""

    def __init__(self, step: str) -> None:
        self.name = f"bare: {step}"
        self._step = step

    def install(self) -> str:
        return ""

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        command = [sys.executable, "-m", bare.__name__, self._step, str(port)]
        process = spawn(command, setup.folder, {"PYTHONPATH": str(ROOT)})
        return Running(process, port, "/", setup.folder / "output.log", ())


def cost(running: Running, served: models.Served, connections: int) -> tuple[float, float, float]:
    """Return answers a second, and the microseconds of a request in the first process, and in all others."""
    pids = [process.pid for process in processes.tree(running.process.pid)]
    before = {pid: used_by(pid).cpu for pid in pids}
    found = wrk.run(running.url, served.body, running.headers, connections, SECONDS)
    used = {pid: (used_by(pid).cpu - before[pid]) / found.requests * 1e6 for pid in pids}
    first = used.pop(running.process.pid)
    return found.rate, first, sum(used.values())


def main(turns: int) -> None:
    served = models.constant(100)
    peers = [*map(Bare, bare.STEPS), PEERS["tsctl"], PEERS["mosec"]]
    found: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
    with ExitStack() as stack:
        servers: dict[str, Running] = {}
        for peer in peers:
            peer.install()
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tsctl-ceilings-")))
            servers[peer.name] = running = peer.start(Setup(served, folder))
            stack.callback(running.stop)
            wrk.run(running.url, served.body, running.headers, max(CONNECTIONS), WARM_UP)
        for number in range(turns):
            names = [*servers][number % len(servers) :] + [*servers][: number % len(servers)]
            for connections in CONNECTIONS:
                for name in names:
                    figures = cost(servers[name], served, connections)
                    found.setdefault((connections, name), []).append(figures)
    for connections in CONNECTIONS:
        print(f"{connections} connections: answers a second, µs in the first process, in the others, in all")
        for name in servers:
            rate, first, others = map(statistics.median, zip(*found[connections, name], strict=True))
            print(f"  {name:<14} {rate:9.0f} {first:8.1f} {others:8.1f} {first + others:8.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS)
