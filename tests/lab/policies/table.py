"""The table that compares the policies, measured in parallel."""

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from tests.lab.policies.rows import CLOSED, OPEN, OVERLOAD, POLICIES, SEEDS, Row

ROWS: Sequence[Row] = (*CLOSED, *OPEN, OVERLOAD)


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy under one row's traffic: means over the seeds. Times in seconds, throughput in responses a second."""

    policy: str
    throughput: float
    mean: float
    p99: float

    def text(self, row: Row) -> str:
        """Return the cell's text: mean/p99 in milliseconds for open arrivals, else responses a second."""
        return f"{self.mean * 1000:.1f}/{self.p99 * 1000:.0f}" if row.open else f"{self.throughput:.0f}"


def measure(row: Row, seeds: Sequence[int] = SEEDS, policies: Sequence[str] = POLICIES) -> list[Cell]:
    """Run each policy under a row's traffic, with each seed."""
    return [_cell(row, policy, seeds) for policy in policies]


def _cell(row: Row, policy: str, seeds: Sequence[int]) -> Cell:
    runs = [row.run(policy, seed) for seed in seeds]
    return Cell(
        policy,
        throughput=fmean(run.throughput for run in runs),
        mean=fmean(run.mean for run in runs),
        p99=fmean(run.percentile(99) for run in runs),
    )


def measure_all(rows: Sequence[Row] = ROWS, seeds: Sequence[int] = SEEDS) -> Iterator[tuple[Row, list[Cell]]]:
    """Measure rows on all cores; yield them in order, as they finish."""
    with multiprocessing.Pool() as pool:
        yield from zip(rows, pool.imap(partial(measure, seeds=seeds), rows), strict=True)


def heading(seeds: Sequence[int]) -> str:
    """Return the description of the simulated model and traffic."""
    return f"""\
A batch of n takes a + c·n; a 8 ms, c 0.4 ms, batch size 32, delay 20 ms, one worker, where nothing else is said.
CPU-like: a 6 ms, c 24 ms, batch size 8, delay 50 ms. Tiny: a 1.5 ms, c 0.05 ms. Service times vary by ± 5 %, and
a client's next request comes 0.3 ms + Exp(0.7 ms) after its answer, 5 ms + Exp(15 ms) far away. Texts have the
lengths of questions to a bank (BANKING77), and a batch of n is padded to its longest: it takes a + c·n·longest / mean.
Grouped by length, each policy decides when a batch is sent and how large it may be, `groupByLength` which requests are
in it. Each number is the mean of {len(seeds)} runs (seeds {min(seeds)} to {max(seeds)}) of 6 000 requests, the first
tenth left out. Every policy meets the same arrivals."""


def markdown(results: Iterable[tuple[Row, Sequence[Cell]]]) -> Iterator[str]:
    """Yield the lines of the table; the best of each row is bold."""
    yield f"| | {' | '.join(POLICIES)} |"
    yield "|---|" + "---:|" * len(POLICIES)
    section = ""
    for row, cells in results:
        unit = "mean/p99 ms" if row.open else "answers a second"
        if unit != section:
            section = unit
            yield f"| *{unit}* |" + " |" * len(POLICIES)
        best = _best(row, cells)
        texts = (f"**{cell.text(row)}**" if _score(row, cell) >= 0.98 * best else cell.text(row) for cell in cells)
        yield f"| {row.name} | {' | '.join(texts)} |"


def _score(row: Row, cell: Cell) -> float:
    return 1 / cell.mean if row.open else cell.throughput


def _best(row: Row, cells: Sequence[Cell]) -> float:
    return max(_score(row, cell) for cell in cells)
