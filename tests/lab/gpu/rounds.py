"""The measurements: the loop and the daemon in turns, on the same device, for each batch size."""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.lab.gpu.loop import own_process, rate
from tests.lab.gpu.served import Load, load, serving

BATCHES = (8, 32)
CLIENTS = 4  # for each row of a batch: two batches are with the worker, which reads ahead, and two wait
WARM_UP = 2.0  # seconds; the daemon learns who comes how often, and cuDNN and the allocator what comes


class Plan(NamedTuple):
    """How often the loop and the daemon run in turns, and the seconds of each."""

    rounds: int = 3
    seconds: float = 8.0


QUICK = Plan(rounds=1, seconds=2.0)


@dataclass
class Measured:
    """The figures of one batch size, by round.

    Attributes:
        loop: images a second without a server.
    """

    batch: int
    loop: list[float] = field(default_factory=list)
    served: list[Load] = field(default_factory=list)

    @property
    def clients(self) -> int:
        return CLIENTS * self.batch

    @property
    def ratio(self) -> float:
        """Served over the loop: the median of the rounds."""
        return median(ours.rate / bare for bare, ours in zip(self.loop, self.served, strict=True))


def measure(network: str, device: str, batch: int, plan: Plan) -> Measured:
    """Measure one batch size.

    Raises:
        DidNotStart: the daemon gives no right answer.
        RuntimeError: the loop ended.
        CliError: the load generator did.
    """
    made = Measured(batch)
    with tempfile.TemporaryDirectory() as folder, own_process() as process:
        loop = partial(rate, network, device, batch, Path(folder))
        process.submit(loop, 0.0).result()  # it is loaded
        with serving(network, device, batch) as running:
            load(running, network, made.clients, WARM_UP)
            for _ in range(plan.rounds):
                made.loop.append(process.submit(loop, plan.seconds).result())
                served = load(running, network, made.clients, plan.seconds, device)
                made.served.append(served)
                print(
                    f"batch {batch}: {made.loop[-1]:.1f} images/s by the loop, {served.rate:.1f} served,"
                    f" {served.errors} errors, p50 {1000 * served.p50:.1f} ms, p99 {1000 * served.p99:.1f} ms,"
                    f" GPU {served.busy_text}",
                    flush=True,
                )
    return made
