"""`python -m tests.lab real --bar [MODEL …]`: real models under `auto` without a flag, beside each constant batch size.

A model is registered twice: one registration keeps what `auto` learns, the other one gets the constant sizes. The best
of these is found by search, then measured again in turns with `auto` and with batches of one; where that misses the
bar, in three times as many turns, all of which count: Resemblyzer in ones took 65 to 175 ms of the processor within two
minutes. The processor time of a request is the daemon's and its workers', and no other program's.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.served import Served
from tests.lab.benchmarks.measuring.processes import cpu_of
from tests.lab.benchmarks.measuring.wrk import run
from tests.lab.policies.page import insert
from tests.lab.real.models import MODELS

NAMES = ("minilm", "photographs", "pitch", "words", "speakers")
SECTION = "real models"
CLIENTS = (1, 8, 32, 128)
LEARNING = 400  # batches of several requests, at least: whole batches and halves are compared in spans of 48, …
LEAST_LEARNING, MOST_LEARNING = 15.0, 180.0  # … and seconds: in a second of tiny batches little can be told
SIZES = (1, 2, 4, 8, 16, 32)
BATCHES = 3  # as large as they can be, in each measurement at least: at its ends all clients come and go at once
LONGEST = 25.0  # seconds of a measurement; after 30 the load generator counts a request as lost
NEAR_ENOUGH, NEVER_BELOW = 0.90, 0.97  # of the best constant size, and of batches of one
_TITLES = {
    "minilm": "MiniLM, texts of 3 to 150 words", "photographs": "EfficientNet-Lite0", "pitch": "torchcrepe",
    "words": "WordLlama", "speakers": "Resemblyzer",
}  # fmt: skip


class Pace(NamedTuple):
    """Requests that were executed a second, and the processor time of each in seconds."""

    rate: float
    cpu: float


class Cell(NamedTuple):
    """One model with so many clients: medians of the rounds.

    Attributes:
        size: the best constant batch size.
        chosen: the size that `auto` has learned to be the best.
    """

    name: str
    clients: int
    auto: Pace
    size: int
    best: Pace
    ones: Pace
    chosen: int

    @property
    def passes(self) -> bool:
        """By the rate, or where the machine had other things to do by the processor time."""
        rate = self.auto.rate >= NEAR_ENOUGH * self.best.rate and self.auto.rate >= NEVER_BELOW * self.ones.rate
        return rate or (self.auto.cpu * NEAR_ENOUGH <= self.best.cpu and self.auto.cpu * NEVER_BELOW <= self.ones.cpu)


class Bench:
    """A daemon with one model, registered as `auto` and as `constant`."""

    def __init__(self, served: Served, name: str, seconds: float) -> None:
        self._served, self._least, self._seconds = served, seconds, seconds
        model, folder = MODELS[name], served.folder / f"bar-{name}"
        folder.mkdir()
        arguments = model.serve(served, folder)
        for each in ("auto", "constant"):
            done = served.run("register", *arguments, "--name", each, "--queue-jobs", "1000", patience=600)
            assert done.returncode == 0, done.stderr
        self._bodies = []
        for number, body in enumerate(model.bodies()):
            self._bodies.append(folder / f"body-{number}")
            self._bodies[-1].write_bytes(body)

    def pace(self, clients: int, size: int | None = None) -> Pace:
        """Measure `auto`, or a constant size."""
        name = "auto" if size is None else "constant"
        if size is not None:
            delay = "0" if size == 1 else "1000"
            self._served.tsctl("set", name, "--batching", "fixed", "--batch-size", str(size), "--max-delay", delay)
        executed, cpu, began = self._executed(name), cpu_of(self._served.pid), time.monotonic()
        load = run(f"{self._served.url}/predictions/{name}", self._bodies, clients, self._seconds)
        assert load.errors == 0, f"{load.errors} errors"
        # Batches that were under way at the end count, too: where a batch takes seconds, they are a part of the work.
        while self._batching(name)["running"]:
            time.sleep(0.01)
        seconds, executed = time.monotonic() - began, self._executed(name) - executed
        return Pace(executed / seconds, (cpu_of(self._served.pid) - cpu) / executed)

    def _batching(self, name: str) -> dict[str, Any]:
        batching: dict[str, Any] = self._served.describe(name)["tsctl"]["batching"]
        return batching

    def _executed(self, name: str) -> int:
        return sum(int(size) * count for size, count in self._batching(name)["sizes"].items())

    def _several(self) -> int:
        return sum(count for size, count in self._batching("auto")["sizes"].items() if size != "1")

    def learn(self, clients: int) -> None:
        """Let `auto` learn: from single requests little, from many batches what they cost, in which it tries others."""
        began, before, self._seconds = time.monotonic(), self._several(), LEAST_LEARNING
        while True:
            batches = BATCHES * min(clients, SIZES[-1]) / self.pace(clients).rate
            self._seconds = min(LONGEST, max(LEAST_LEARNING, batches))
            passed, several = time.monotonic() - began, self._several() - before
            if clients == 1 or passed > MOST_LEARNING or several >= LEARNING:
                break
        self._seconds = min(LONGEST, max(self._least, batches))

    def cell(self, name: str, clients: int, rounds: int) -> Cell:
        self.learn(clients)
        sizes = [size for size in SIZES if size <= clients]
        found = {size: self.pace(clients, size) for size in sizes}
        best = max(sizes, key=lambda size: found[size].rate)
        paces: dict[int | None, list[Pace]] = {None: [], best: [], 1: []}
        # A lone client is served in ones either way: all that differs is what else the machine did in these seconds.
        turns = rounds if clients > 1 else 3 * rounds
        for further in (turns, 2 * turns):
            for _ in range(further):
                for size, measured in paces.items():
                    measured.append(self.pace(clients, size))
            batching = self._batching("auto")
            chosen = batching["learned"]["bestSize"] or batching["batchSize"]
            cell = Cell(name, clients, _median(paces[None]), best, _median(paces[best]), _median(paces[1]), chosen)
            if cell.passes:
                break
        return cell

    def close(self) -> None:
        for each in ("auto", "constant"):
            self._served.tsctl("unregister", each)


def _median(paces: Sequence[Pace]) -> Pace:
    return Pace(*(statistics.median(values) for values in zip(*paces, strict=True)))


def markdown(cells: Sequence[Cell], page: str = "") -> Iterator[str]:
    """Yield the lines of the table; of models that were not measured now those that the page has."""
    heads = ("model, in flight", "`auto`: answers/s, CPU ms", "size", "best constant size", "answers/s, CPU ms")
    yield f"| {' | '.join((*heads, 'in ones', 'of the best, of ones'))} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, title in _TITLES.items():
        measured = [cell for cell in cells if cell.name == name]
        if not measured:
            yield from (line for line in page.splitlines() if line.startswith(f"| {title}, "))
        for cell in measured:
            ratios = f"{cell.auto.rate / cell.best.rate:.2f}, {cell.auto.rate / cell.ones.rate:.2f}"
            yield (
                f"| {title}, {cell.clients} | {_text(cell.auto)} | {cell.chosen} | {cell.size} |"
                f" {_text(cell.best)} | {_text(cell.ones)} | {ratios} |"
            )


def _text(pace: Pace) -> str:
    return f"{_digits(pace.rate)}, {_digits(pace.cpu * 1000)}"


def _digits(value: float) -> str:
    """Return the first three digits of a number."""
    return f"{float(f'{value:.3g}'):g}"


def measure(served: Served, names: Sequence[str], seconds: float, rounds: int, page: Path | None) -> int:
    """Measure the models; return how many cells miss the bar."""
    cells = []
    for name in names:
        bench = Bench(served, name, seconds)
        for clients in CLIENTS:
            cells.append(bench.cell(name, clients, rounds))
            print(*list(markdown(cells[-1:]))[2:], "" if cells[-1].passes else "missed", flush=True)
        bench.close()
    if page is not None:
        insert(page, SECTION, "\n".join(markdown(cells, page.read_text())))
    return sum(not cell.passes for cell in cells)
