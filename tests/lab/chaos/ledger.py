"""The outcome of each request, from all clients; and forbidden outcomes."""

import itertools
import threading
from collections import Counter, defaultdict
from pathlib import Path

from tests.lab.chaos.verdict import Asked, Broken, Kind, Rules, judge_runs


class Ledger:
    """Used by all threads.

    Attributes:
        kinds: by model, how many requests ended how.
        unanswered, broken: a sentence each.
        killed: the processes that we have killed.
        generations: by model, of the archive that was acknowledged last.
    """

    def __init__(self) -> None:
        self.kinds: defaultdict[str, Counter[Kind]] = defaultdict(Counter)
        self.unanswered: list[str] = []
        self.broken: list[str] = []
        self.killed: set[int] = set()
        self.generations: dict[str, int] = {}
        self._ended: dict[int, tuple[str, Rules, Kind, int]] = {}
        self._answering: dict[int, None] = {}  # processes, in the order in which they were first heard of
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def make(self, model: str, rules: Rules, words: bytes, deadline: int = 0, **further: bool) -> Asked:
        """Make the next request; `further` are those of `Asked`."""
        return Asked(next(self._numbers), rules, words, self.generations[model], deadline, **further)

    def ended(self, model: str, asked: Asked, kind: Kind, pid: int = 0) -> None:
        with self._lock:
            self.kinds[model][kind] += 1
            self._ended[asked.number] = (model, asked.rules, kind, pid)
        if pid:
            self.heard(pid)

    def heard(self, pid: int) -> None:
        """Note a process that has answered."""
        with self._lock:
            self._answering[pid] = None

    def answering(self) -> list[int]:
        """The processes that have answered, and that nobody has killed."""
        with self._lock:
            return [pid for pid in self._answering if pid not in self.killed]

    def forget(self, pid: int) -> None:
        """Remove a process that is no worker any more."""
        with self._lock:
            self._answering.pop(pid, None)

    def check_runs(self, journal: Path) -> Counter[str]:
        """Hold every request against those who have run it; gives how many were run how often."""
        runs, torn = read_journal(journal)
        self.broken += [f"chaos-{number} reached its handler with other bytes than it was sent with" for number in torn]
        counts: Counter[str] = Counter()
        for number, (model, rules, kind, pid) in self._ended.items():
            ran = runs.pop(number, [])
            counts[f"{len(ran)} times"] += 1
            try:
                judge_runs(kind, rules, pid, ran, self.killed)
            except Broken as error:
                self.broken.append(f"chaos-{number} of {model}, {kind}: {error}")
        if not self.unanswered and not self.broken:  # else those are the ones
            self.broken += [f"chaos-{number} was run by {ran}, and never ended" for number, ran in runs.items()]
        return counts


def read_journal(journal: Path) -> tuple[dict[int, list[int]], list[int]]:
    """Read which processes have begun each request, and which requests had other bytes than they were sent with."""
    runs: defaultdict[int, list[int]] = defaultdict(list)
    torn: list[int] = []
    for line in journal.read_text().splitlines():
        number, what = line.split()
        if what == "torn":
            torn.append(int(number))
        else:
            runs[int(number)].append(int(what))
    return runs, torn
