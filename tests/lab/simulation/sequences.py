"""The world's own record of sequences, beside the daemon's (daemon/extensions/sequences).

A sequence is open from its first request until it is quiet and has ended: by a request's mark, by an answer, or because
it was quiet for too long when there was need of room. The record knows its worker, and what must be refused.
"""

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tsctl.daemon.core.errors import DaemonError, QueueFull
from tsctl.daemon.core.job import Fate, JobPhase, Outcome
from tsctl.daemon.extensions.sequences.service import sequences_of
from tsctl.daemon.extensions.sequences.table import SequenceBroken, SequenceFull, TooManySequences

if TYPE_CHECKING:
    from tests.lab.simulation.engine import WatchedWorker
    from tests.lab.simulation.ledger import Entry, Served
    from tests.lab.simulation.process import Process
    from tests.lab.simulation.world import World

ID, START, END = "ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"
_ORDER = (SequenceBroken, SequenceFull, TooManySequences)  # in which they are looked for


class Mark(NamedTuple):
    """The place of a request in a sequence; without an id the daemon makes one."""

    id: str
    start: bool
    end: bool

    @property
    def headers(self) -> list[tuple[str, str]]:
        said = [(ID, self.id)] if self.id else []
        return [*said, *([(START, "true")] if self.start else []), *([(END, "true")] if self.end else [])]


class Open:
    """One open sequence.

    Attributes:
        worker: keeps its state; None before the first request was sent.
        waiting, running: its requests, in the order of their arrival, and at the worker.
        ended: nothing more is expected.
    """

    def __init__(self, now: float) -> None:
        self.worker: WatchedWorker | None = None
        self.waiting: list[Entry] = []
        self.running: list[Entry] = []
        self.began = self.last = now
        self.ended = False

    def __repr__(self) -> str:
        worker = self.worker and self.worker.process
        return f"<Open at {worker}: {self.waiting} wait, {self.running} run{', ended' if self.ended else ''}>"

    @property
    def quiet(self) -> bool:
        return not self.waiting and not self.running


class SequenceBook:
    """The sequences of one registration of a version.

    Attributes:
        open: by id.
        broken: the ids of sequences whose state is lost.
        made: ids that the daemon has made.
    """

    def __init__(self, world: "World", served: "Served") -> None:
        self.open: dict[str, Open] = {}
        self.broken: set[str] = set()
        self.made: list[str] = []
        self._world = world
        self._served = served
        self._homes: dict[str, WatchedWorker] = {}  # of sequences that were forgotten while they might go on
        self._chance = random.Random(f"sequences {world.plan.seed} {served.number}")
        self._begun: dict[tuple[int, str], int] = {}  # process and sequence → the last request that it began

    def draw(self, name: str) -> Mark:
        """Draw the mark of a request: mostly of a few sequences, sometimes of a new one."""
        chance = self._chance
        if self._world.healed:
            return Mark(f"last {name}", True, True)  # so that it leaves no sequence behind
        kind = chance.random()
        start, end = chance.random() < 0.2, chance.random() < 0.2
        if kind < 0.1:
            return Mark("", start, end)
        if kind < 0.2 and self.made:
            return Mark(chance.choice(self.made), start, end)
        return Mark(f"s{chance.choice((1, 1, 1, 2, 2, 3, 4, 5))}", start, end)

    @property
    def full(self) -> bool:
        """Whether no other sequence can be opened now."""
        return self.refusal(Mark("another", True, True)) is not None

    # Acceptance.

    def refusal(self, mark: Mark) -> type[DaemonError] | None:
        """Return how the daemon must refuse this request, for the sake of its sequence; None for not at all."""
        self._look()
        sequences = sequences_of(self._served.model)
        assert sequences is not None
        here = self.open.get(mark.id)
        if mark.id in self.broken and not mark.start:
            return SequenceBroken
        if here is not None:
            return SequenceFull if len(here.waiting) >= sequences.most_waiting else None
        if len(self.open) >= sequences.most:
            self._forget()
        return TooManySequences if len(self.open) >= sequences.most else None

    def refused(self, entry: "Entry", error: DaemonError, expected: type[DaemonError] | None) -> None:
        """Check the refusal of a request."""
        kind = type(error) if isinstance(error, _ORDER) else None
        reached = kind is not None or isinstance(error, QueueFull)
        if reached and kind is not expected:
            self._world.broken("a request is refused where its sequence cannot take it, and only there", entry=entry,
                               error=error, expected=expected, open=self.open)  # fmt: skip

    def accepted(self, entry: "Entry", expected: type[DaemonError] | None) -> None:
        """Enter a request that waits, and check that it may."""
        assert entry.mark is not None
        if expected is not None:
            self._world.broken("a request is refused where its sequence cannot take it, and only there", entry=entry,
                               expected=expected, open=self.open)  # fmt: skip
        now, name = self._world.loop.now(), entry.job.mark.id  # type: ignore[attr-defined]
        if not entry.mark.id:
            self.made.append(name)
        elif name != entry.mark.id:
            self._world.broken("a request belongs to the sequence that it names", entry=entry, name=name)
        entry.mark = entry.mark._replace(id=name)
        self.broken.discard(name)
        if name not in self.open:
            self.open[name] = Open(now)
            self.open[name].worker = self._homes.pop(name, None)
        self.open[name].waiting.append(entry)
        self.open[name].last = now

    # At the workers.

    def sent(self, worker: "WatchedWorker", entries: "Sequence[Entry]") -> None:
        """Check a batch that is sent."""
        self._look(entries)
        marked = [entry for entry in entries if entry.mark is not None]
        if len({entry.mark.id for entry in marked if entry.mark}) < len(marked):
            self._world.broken("a batch has one request of a sequence", entries=entries)
        for entry in marked:
            assert entry.mark is not None
            here = self.open.get(entry.mark.id)
            assert here is not None and entry in here.waiting, entry  # no request that was refused, or runs
            if here.waiting[0] is not entry:
                self._world.broken("the requests of a sequence are sent in their order", entry=entry, here=here)
            if here.running and not self._served.by_rows:
                self._world.broken("one request of a sequence runs at a time", entry=entry, here=here)
            if here.worker is not None and here.worker is not worker:
                self._world.broken("a sequence stays with its worker", entry=entry, here=here, worker=worker)
            here.worker = worker
            here.waiting.remove(entry)
            here.running.append(entry)

    def begun(self, process: "Process", entry: "Entry") -> None:
        """Check a request that a handler begins."""
        if entry.mark is None:
            return
        key = process.number, entry.mark.id
        if entry.number <= self._begun.get(key, 0):
            self._world.broken("a handler sees the requests of a sequence in their order", worker=process, entry=entry)
        self._begun[key] = entry.number
        here = self.open.get(entry.mark.id)
        if here is not None and here.worker is not None and here.worker.process is not process:
            self._world.broken("a sequence stays with its worker", entry=entry, here=here, worker=process)

    def ended(self, entry: "Entry", outcome: Outcome) -> None:
        """Note that a request comes back from its worker."""
        if entry.mark is None:
            return
        self._look()
        here = self.open[entry.mark.id]
        here.running.remove(entry)
        here.last = self._world.loop.now()
        here.ended |= entry.mark.end and outcome.fate in (Fate.ANSWERED, Fate.CANCELLED)
        for key, value in outcome.reply.headers if outcome.reply is not None else ():
            if key == END and value in self.open:
                self.open[value].ended = True
        self._look()

    def gone(self, worker: "WatchedWorker") -> "list[Entry]":
        """Note that a worker ends, with the state of its sequences; return the requests that wait for it."""
        self._look()
        self._forget()
        lost = {name: each for name, each in self.open.items() if each.worker is worker}
        for name, each in lost.items():
            del self.open[name]
            if not each.ended:
                self.broken.add(name)
        for name in [name for name, home in self._homes.items() if home is worker]:
            del self._homes[name]
        return [entry for each in lost.values() for entry in each.waiting]

    # At rest.

    def due(self, free: "dict[WatchedWorker, int]") -> "list[Entry]":
        """Return the requests that these workers could begin now."""
        self._look()
        overlap = self._served.by_rows
        return [
            each.waiting[0]
            for each in self.open.values()
            if each.waiting and (overlap or not each.running) and (each.worker is None or each.worker in free)
        ]

    def _look(self, sent: "Sequence[Entry]" = ()) -> None:
        """Forget the requests that do not wait any more, other than those just sent, and sequences that have ended."""
        for name, each in list(self.open.items()):
            each.waiting = [entry for entry in each.waiting if entry.job.phase is JobPhase.QUEUED or entry in sent]
            if each.quiet and (each.ended or each.worker is None):
                del self.open[name]

    def _forget(self) -> None:
        """Forget the quiet sequences whose time is over."""
        settings, now = self._served.model.settings, self._world.loop.now()
        for name, each in list(self.open.items()):
            idle = each.last + (settings.sequence_idle or math.inf)
            if each.quiet and min(idle, each.began + (settings.sequence_timeout or math.inf)) <= now:
                del self.open[name]
                if each.worker is not None:
                    self._homes[name] = each.worker
