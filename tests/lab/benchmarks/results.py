"""The measurements: figures by workload, connections and peer, one for each round; their medians; the machine."""

import os
import platform
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from tsctl.handlers.optimize.checks.processor import read_processor

Figures = dict[str, float]  # rate: answers/s · p50 p95 p99 first again: s · cpu: s a request · pss: bytes · counts
COSTS = ("p50", "p95", "p99", "first", "again", "cpu", "pss")  # of which 0 says that nothing was measured


@dataclass(slots=True)
class Results:
    """All measurements of one run.

    Attributes:
        facts: of the run: versions, machine, settings.
        troubles: what went wrong, in sentences.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    _found: defaultdict[tuple[str, int, str], list[Figures]] = field(default_factory=lambda: defaultdict(list))

    def add(self, workload: str, connections: int, peer: str, figures: Figures) -> None:
        """Add what was measured in a round; 0 connections where there are none to choose."""
        self._found[workload, connections, peer].append(figures)

    def of(self, workload: str, connections: int, peer: str) -> list[Figures]:
        return self._found.get((workload, connections, peer), [])

    def peers(self, workload: str) -> list[str]:
        return list(dict.fromkeys(peer for name, _, peer in self._found if name == workload))

    def connections(self, workload: str) -> list[int]:
        return sorted({connections for name, connections, _ in self._found if name == workload})

    def median(self, workload: str, connections: int, peer: str, figure: str) -> float | None:
        """The median over the rounds, None if it was not measured."""
        of = [figures[figure] for figures in self.of(workload, connections, peer) if figure in figures]
        found = [value for value in of if value or figure not in COSTS]
        return statistics.median(found) if found else None


def machine() -> dict[str, str]:
    """The processor with the instruction sets that matter to torch, its usable cores, memory, kernel, Python, torch."""
    return {
        "machine": str(read_processor()),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB of memory",
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "torch": version("torch"),
    }
