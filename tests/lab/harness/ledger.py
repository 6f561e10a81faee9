"""The outcome of each request, from all clients; what was done to the daemon; and forbidden outcomes."""

import itertools
import threading
from collections import Counter, defaultdict
from pathlib import Path

from tests.lab.harness.verdict import Asked, Broken, Kind, Rules, judge_runs


class Ledger:
    """Used by all threads.

    Attributes:
        kinds: by model, how many requests ended how.
        done: what was done or has happened, and how often.
        unanswered, broken: a sentence each.
        killed: the processes that we have killed.
        generations: by model, of the archive that was acknowledged last.
        routes: by model, the generations that have a weight, route after route; both while it changes.
        slowest: seconds of one right answer.
    """

    def __init__(self) -> None:
        self.kinds: defaultdict[str, Counter[Kind]] = defaultdict(Counter)
        self.done: Counter[str] = Counter()
        self.unanswered: list[str] = []
        self.broken: list[str] = []
        self.killed: set[int] = set()
        self.generations: dict[str, int] = {}
        self.routes: defaultdict[str, list[frozenset[int]]] = defaultdict(list)
        self.slowest = 0.0
        self._ended: dict[int, tuple[str, Rules, Kind, int]] = {}
        self._answering: dict[int, None] = {}  # processes, in the order in which they were first heard of
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def bad(self) -> bool:
        return bool(self.unanswered or self.broken)

    def __str__(self) -> str:
        lines = [
            f"{count:8} {model}: {kind}" for model, kinds in self.kinds.items() for kind, count in sorted(kinds.items())
        ]
        lines += [f"{count:8} {what}" for what, count in sorted(self.done.items())]
        lines += [f"{self.slowest:8.2f} seconds, the slowest answer"] if self.slowest else []
        return "\n".join((*lines, f"{len(self.unanswered):8} unanswered", f"{len(self.broken):8} broken"))

    def make(self, model: str, rules: Rules, words: bytes, deadline: int = 0, **further: int) -> Asked:
        """Make the next request; `further` are those of `Asked`."""
        routes = self.routes[model]
        return Asked(
            next(self._numbers), rules, words, self.generations[model], deadline, routes=routes,
            since=max(0, len(routes) - 1), **further,  # type: ignore[arg-type]  # flags, and a version
        )  # fmt: skip

    def count(self, what: str, number: int = 1) -> None:
        """Count something that was done or has happened."""
        with self._lock:
            self.done[what] += number

    def ended(self, model: str, asked: Asked, kind: Kind, pid: int = 0, seconds: float = 0.0) -> None:
        with self._lock:
            self.kinds[model][kind] += 1
            self._ended[asked.number] = (model, asked.rules, kind, pid)
            self.slowest = max(self.slowest, seconds)
            if pid:
                self._answering[pid] = None

    def answering(self) -> list[int]:
        """The processes that have answered, and that nobody has killed."""
        with self._lock:
            return [pid for pid in self._answering if pid not in self.killed]

    def forget(self, pid: int) -> None:
        """Remove a process that is no worker any more."""
        with self._lock:
            self._answering.pop(pid, None)

    def expect(self, *happened: str) -> None:
        """Note as broken what should have happened, and never did: a storm without it proves nothing."""
        self.broken += [f"it never happened: {each}" for each in happened if not self.done[each]]

    def check_runs(self, journal: Path) -> None:
        """Hold every request against those who have run it, and count how many were run how often."""
        runs, torn = read_journal(journal)
        self.broken += [f"chaos-{number} reached its handler with other bytes than it was sent with" for number in torn]
        for number, (model, rules, kind, pid) in self._ended.items():
            ran = runs.pop(number, [])
            self.done[f"requests run {len(ran)} times"] += 1
            try:
                judge_runs(kind, rules, pid, ran, self.killed)
            except Broken as error:
                self.broken.append(f"chaos-{number} of {model}, {kind}: {error}")
        if not self.bad:  # else those are the ones
            self.broken += [f"chaos-{number} was run by {ran}, and never ended" for number, ran in runs.items()]


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
