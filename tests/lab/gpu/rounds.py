"""The measurements: the loop and the daemon in turns, on the same device, for each batch size."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from tests.lab.benchmarks import models
from tests.lab.gpu import load, served
from tests.lab.gpu.busy import watched
from tests.lab.gpu.load import Load
from tests.lab.gpu.loop import Program

BATCHES = (8, 32)
CLIENTS = 4  # for each row of a batch: two batches are with the worker, which reads ahead, and two wait
WARM_UP = 2.0  # seconds; the daemon learns who comes how often, and cuDNN and the allocator what comes


@dataclass(frozen=True, slots=True)
class Plan:
    """How long it takes.

    Attributes:
        rounds: how often the loop and the daemon run in turns.
        seconds: of each.
    """

    rounds: int = 3
    seconds: float = 8.0


QUICK = Plan(rounds=1, seconds=2.0)


@dataclass
class Measured:
    """The figures of one batch size, by round.

    Attributes:
        loop: images a second without a server.
        busy: percent of the time, while the daemon runs; None where it was not read.
    """

    batch: int
    clients: int
    loop: list[float] = field(default_factory=list)
    served: list[Load] = field(default_factory=list)
    busy: list[float | None] = field(default_factory=list)

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
    made = Measured(batch, CLIENTS * batch)
    body = models.resnet(network).body.read_bytes()
    with tempfile.TemporaryDirectory(prefix="tsctl-gpu-") as folder:
        loop = Program("tests.lab.gpu.loop", network, device, str(batch))
        try:
            loop.line()  # it is loaded
            running = served.start(network, device, batch, Path(folder))
            try:
                ask = partial(load.run, running.port, running.target, body, made.clients)
                ask(WARM_UP)
                for _ in range(plan.rounds):
                    loop.tell(plan.seconds)
                    made.loop.append(float(loop.line()))
                    with watched(device.removeprefix("cuda:")) as busy:
                        made.served.append(ask(plan.seconds))
                    made.busy.append(busy.percent)
            finally:
                running.stop()
        finally:
            loop.stop()
    return made


def all_of(network: str, device: str, plan: Plan, batches: Sequence[int] = BATCHES) -> list[Measured]:
    """Measure each batch size."""
    return [measure(network, device, batch, plan) for batch in batches]
