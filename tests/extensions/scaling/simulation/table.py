"""The table that compares the rule with fixed numbers of workers."""

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.extensions.scaling.simulation.run import MODEL, MOST, TARGET, capacity_of, run
from tests.extensions.scaling.simulation.traffic import Scenario, scenarios

FIXED = (1, 2, 3, 4, 5, 6)
HEADING = f"""\
A batch of 4 takes 160 ms: a worker answers {capacity_of(MODEL):.0f} requests a second. It loads the model for
{MODEL.load_time:.0f} s. The target is {TARGET * 1000:.0f} ms, the range 1 to {MOST} workers; rates are in what one
worker can answer. Each cell: the 99th percentile of the latency, and worker-seconds; with the rule, the number of its
changes, too. Requests that still wait at the end count with the time that they have waited."""


@dataclass(frozen=True, slots=True)
class ScalingCell:
    """One run in figures: seconds, worker-seconds, changes (None with a fixed number)."""

    p99: float
    worker_seconds: float
    changes: int | None

    def text(self) -> str:
        wait = f"{self.p99 * 1000:.0f} ms" if self.p99 < 10 else f"{self.p99:.0f} s"
        more = "" if self.changes is None else f", {self.changes} {'change' if self.changes == 1 else 'changes'}"
        return f"{wait}, {self.worker_seconds:.0f}{more}"


def measure(index: int) -> list[ScalingCell]:
    """Run one scenario with the rule, and with each fixed number."""
    scenario = scenarios(capacity_of(MODEL))[index]
    return [cell(scenario, workers) for workers in (None, *FIXED)]


def cell(scenario: Scenario, workers: int | None) -> ScalingCell:
    found = run(scenario, workers)
    return ScalingCell(found.percentile(99), found.worker_seconds, len(found.changes) if workers is None else None)


def measure_all() -> Iterator[tuple[Scenario, list[ScalingCell]]]:
    """Measure all scenarios on all cores; yield them in order."""
    listed = scenarios(capacity_of(MODEL))
    with multiprocessing.Pool() as pool:
        yield from zip(listed, pool.imap(measure, range(len(listed))), strict=True)


def markdown(results: Iterable[tuple[Scenario, Sequence[ScalingCell]]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| | the rule | {' | '.join(map(str, FIXED))} |"
    yield "|---|" + "---:|" * (1 + len(FIXED))
    for scenario, cells in results:
        yield f"| {scenario.name} | {' | '.join(each.text() for each in cells)} |"
