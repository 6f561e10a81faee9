"""The measurements: figures by workload, connections, peer and round; and their medians."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Figures = dict[str, float]  # rate: answers/s · p50 p95 p99 first again: s · cpu: s a request · pss: bytes · counts


@dataclass(frozen=True, slots=True)
class Entry:
    """One measurement.

    Attributes:
        connections: 0 where there are none to choose.
    """

    workload: str
    connections: int
    peer: str
    round: int
    figures: Figures


@dataclass(slots=True)
class Results:
    """All measurements of one run.

    Attributes:
        facts: of the run: versions, machine, settings.
        troubles: what went wrong, in sentences.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def add(self, workload: str, connections: int, peer: str, number: int, figures: Figures) -> None:
        self.entries.append(Entry(workload, connections, peer, number, figures))

    def of(self, workload: str, connections: int, peer: str) -> list[Figures]:
        wanted = (workload, connections, peer)
        return [entry.figures for entry in self.entries if (entry.workload, entry.connections, entry.peer) == wanted]

    def peers(self, workload: str) -> list[str]:
        return list(dict.fromkeys(entry.peer for entry in self.entries if entry.workload == workload))

    def connections(self, workload: str) -> list[int]:
        return sorted({entry.connections for entry in self.entries if entry.workload == workload})

    def median(self, workload: str, connections: int, peer: str, figure: str) -> float | None:
        """The median over the rounds, None if it was not measured."""
        return median(figures[figure] for figures in self.of(workload, connections, peer) if figure in figures)


def median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None
