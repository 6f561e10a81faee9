"""Measurements of both loops in turns, and their table.

First tokens are measured with cores that stay awake (measuring/awake.py), those of the loop without a server, too: of a
burst's delay 0.5 to 1 ms were the wake-ups of halted virtual cores. A caller passes
`cores_awake`, or `nullcontext` for cores that may halt.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median, quantiles

from tests.e2e.served import Served
from tests.lab.benchmarks.streams.client import Clients
from tests.lab.benchmarks.streams.cpu import Used, used_by
from tests.lab.benchmarks.streams.engine import MOST
from tests.lab.benchmarks.streams.others import others

STREAMS = 32
LONG = 4000  # tokens of a stream whose rate is measured: its beginning and end are a thousandth of it
SHORT = 10  # tokens of a stream whose beginning is measured
TIMES = 40  # how often 32 short streams begin together in a round
APART = 0.013  # seconds between two of these
SINGLE = 60  # how often a single short stream begins in a round, alone and beside 31 others
Cores = Callable[[], AbstractContextManager[None]]  # what first tokens are measured in


@dataclass
class Loop:
    """The figures of one loop: tokens a second of each round, and seconds to the first tokens of each round."""

    rates: list[float] = field(default_factory=list)
    firsts: list[list[float]] = field(default_factory=list)


@dataclass
class Measured:
    """Both loops, and the processor time a step of each process of the served one."""

    bare: Loop = field(default_factory=Loop)
    served: Loop = field(default_factory=Loop)
    used: dict[str, list[Used]] = field(default_factory=dict)
    alone: list[list[float]] = field(default_factory=list)
    joining: list[list[float]] = field(default_factory=list)

    def ratio(self) -> float:
        """Return the median of the rounds' ratios of tokens a second: served over bare."""
        return median(ours / bare for bare, ours in zip(self.bare.rates, self.served.rates, strict=True))

    def over(self) -> float:
        """Return the median of the rounds' differences of the times to the first token, in seconds."""
        return self.later(self.served.firsts)

    def later(self, served: list[list[float]]) -> float:
        """Return by how much these first tokens came later than those of the loop, in seconds."""
        pairs = zip(self.bare.firsts, served, strict=True)
        return median(median(ours) - median(bare) for bare, ours in pairs)


def bare_runs(tokens: int, times: int) -> list[tuple[float, float]]:
    """Run the loop without a server in a process of its own; return the seconds to first and last token, each time."""
    arguments = map(str, (STREAMS, tokens, times, APART))
    command = [sys.executable, "-m", "tests.lab.benchmarks.streams.bare", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pairs = (line.split() for line in done.stdout.splitlines())
    return [(float(first), float(last)) for first, last in pairs]


def measure_bare(loop: Loop, cores: Cores) -> None:
    [(_, seconds)] = bare_runs(LONG, 1)
    loop.rates.append(STREAMS * LONG / seconds)
    with cores():
        loop.firsts.append([first for first, _ in bare_runs(SHORT, TIMES)])


def measure_served(served: Served, worker: int, clients: Clients, made: Measured, cores: Cores) -> None:
    pids = {"worker": worker, "daemon": served.pid, "clients": os.getpid()}
    clients.run("engine", 100)
    before = {name: used_by(pid) for name, pid in pids.items()}
    streamed = clients.run("engine", LONG)
    for name, pid in pids.items():
        made.used.setdefault(name, []).append(used_by(pid).since(before[name]))
    clients.check(LONG)
    made.served.rates.append(STREAMS * LONG / streamed.seconds)
    firsts: list[float] = []
    with cores():
        for _ in range(TIMES):
            time.sleep(APART)
            firsts += clients.run("engine", SHORT).firsts
            clients.check(SHORT)
    made.served.firsts.append(firsts)


def measure_single(port: int, made: Measured, cores: Cores) -> None:
    """Let single streams begin: while no other runs, and while 31 do."""
    client = Clients(port, 1)
    with cores():
        made.alone.append(_singles(client))
        with others(port, STREAMS - 1, MOST) as process:
            made.joining.append(_singles(client))
            assert process.poll() is None, "the others ended too early"
    client.close()


def _singles(client: Clients) -> list[float]:
    firsts: list[float] = []
    for number in range(SINGLE):
        time.sleep(APART + number % 10 * 1e-4)  # at any moment of a call that others are in
        firsts += client.run("engine", SHORT).firsts
    client.check(SHORT)
    return firsts


def report(made: Measured, write: Callable[[str], object] = print) -> None:
    """Write the table, and a line for each process."""
    write(f"{'':16}{'tokens a second':>16}{'a step':>10}{'first token, p50':>18}{'p99':>9}")
    for name, loop in (("without a server", made.bare), ("served", made.served)):
        rate, cuts = median(loop.rates), [quantiles(each, n=100) for each in loop.firsts]
        half, most = (median(each[at] for each in cuts) for at in (49, 98))
        step = STREAMS / rate * 1e6
        write(f"{name:16}{rate:16.0f}{step:7.0f} µs{half * 1e3:15.2f} ms{most * 1e3:6.2f} ms")
    ratios = sorted(ours / bare for bare, ours in zip(made.bare.rates, made.served.rates, strict=True))
    write(
        f"ratio {made.ratio():.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); first token {made.over() * 1e3:.2f} ms later"
    )
    for name, firsts in (("a single request", made.alone), ("one that joins 31", made.joining)):
        if firsts:
            half, later = median(map(median, firsts)), made.later(firsts)
            write(f"{name:20} {half * 1e3:.2f} ms to the first token, {later * 1e3:.2f} ms later")
    for name, each in made.used.items():
        cpu, waited = (median(getattr(used, what) for used in each) / LONG * 1e6 for what in ("cpu", "waited"))
        write(f"{name:8} {cpu:6.0f} µs on a core in each step, {waited:4.0f} µs ready without one")
