"""The open sequences of one version, and which request runs next: no clock, no asyncio.

    ┌ first request ┐        ┌ a worker takes a request ┐
    ▼               │        ▼                          │
    WAITING (no worker) ──▶ OWNED ──ends, idle, total──▶ forgotten; its worker is remembered for a while
                             │
                             └──its worker has gone──▶ broken: its requests are answered, and later ones
                                                       until one says that it starts the sequence anew

A sequence belongs to the worker that took its first request. There its requests run in the order of their arrival:
where whole batches run, one at a time; where rows run on their own, they begin in that order.

One client may have all places while nobody else asks. Where all are taken, a newcomer gets the place of a client that
has at least two more than the newcomer, so that shares become equal, and no two clients take from each other in turns.

A sequence that a known client opened is no other known client's: its state is. An address may change meanwhile.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from tsctl.daemon.core.client import NOBODY, ShareHolder
from tsctl.daemon.core.errors import BadRequest, DaemonError, LimitReached
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.sequences.marks import USUAL, SequenceHeaders

LONGEST = 1000  # characters of an id
REMEMBERED = 10_000  # sequences whose worker is known after they were forgotten, and as many that are broken
W = TypeVar("W")  # a worker, hashable


class TooManySequences(LimitReached):
    """As many sequences are open as may be."""


class SequenceFull(TooManySequences):
    """As many requests of one sequence wait as may."""


class SequenceBroken(DaemonError):
    """The worker that kept the sequence's state has gone."""

    status = 409
    kind = "ConflictStatusException"
    refusal_label = "other"  # a worker's doing, whatever the status says


class SequenceOfAnother(DaemonError):
    """The sequence belongs to another known client."""

    status = 409
    kind = "ConflictStatusException"

    def __init__(self, name: str) -> None:
        super().__init__(f'The sequence "{name}" is another client\'s. Choose an id that no other client has.')


class OpenSequence(Generic[W]):
    """One open sequence.

    Attributes:
        worker: keeps the state; None before the first request has run.
        waiting: its requests in the queue, in the order of their arrival.
        running: how many of its requests are at the worker.
        client: the one that opened it, in whose share it is.
        owner: the same, or the known client whose state it goes on with.
        began, last: when it was opened, and when a request last arrived or ended.
        ended: no further request is expected.
    """

    __slots__ = ("began", "client", "ended", "id", "last", "owner", "running", "waiting", "worker")

    def __init__(self, id: str, client: ShareHolder, now: float) -> None:  # noqa: A002
        self.id = id
        self.client = self.owner = client
        self.worker: W | None = None
        self.waiting: OrderedDict[Job, None] = OrderedDict()
        self.running = 0
        self.began = self.last = now
        self.ended = False

    def __repr__(self) -> str:
        return f"<OpenSequence {self.id} at {self.worker!r}: {len(self.waiting)} wait, {self.running} run>"

    @property
    def quiet(self) -> bool:
        return not self.waiting and not self.running


def displaced(
    client: ShareHolder, held: Mapping[ShareHolder, int], quiet: Iterable[OpenSequence[W]]
) -> OpenSequence[W] | None:
    """Choose the sequence that makes room for a client's new one: the longest quiet one of those who hold most.

    Args:
        held: client → open sequences.
        quiet: sequences without a request that waits or runs.

    Returns:
        None if no sequence has to go: nobody holds at least two more than the client.
    """
    least = held.get(client, 0) + 2
    over = [each for each in quiet if held[each.client] >= least]
    return max(over, key=lambda each: (held[each.client], -each.last), default=None)


class Sequences(Generic[W]):
    """The sequences of one version.

    Args:
        name: the model, for messages; so are `headers`, the names of the headers of sequences.
        overlapping: several requests of a sequence may run at the same time, begun in their order.

    Attributes:
        most: open sequences; a request that would open another one takes the place of a client that has too many, or
            is refused.
        most_waiting: requests that may wait for one sequence.
        idle, total: seconds after which a quiet sequence makes room, since its last request, and since its first; inf
            for never.
    """

    def __init__(self, name: str, headers: SequenceHeaders = USUAL, *, overlapping: bool = False) -> None:
        self.most = self.most_waiting = 1
        self.idle = self.total = math.inf
        self._name = name
        self._headers = headers
        self._overlapping = overlapping
        self._open: dict[str, OpenSequence[W]] = {}
        self._of: dict[Job, OpenSequence[W]] = {}  # waiting or running
        self._owned: Counter[W] = Counter()  # worker → open sequences
        self._held: Counter[ShareHolder] = Counter()  # client → open sequences, where there are any
        # By worker, None for none: the sequences of which a request can run now, the longest waiting first.
        self._ready: dict[W | None, OrderedDict[str, OpenSequence[W]]] = {None: OrderedDict()}
        # Of forgotten sequences, and whose they were.
        self._homes: OrderedDict[str, tuple[W, ShareHolder]] = OrderedDict()
        self._broken: OrderedDict[str, str] = OrderedDict()  # id → why

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<Sequences {len(self)}/{self.most}>"

    def check(self, name: str, start: bool, now: float, client: ShareHolder = NOBODY) -> None:
        """Check that a request of this sequence may wait.

        Raises:
            BadRequest: the id is too long to be remembered.
            SequenceBroken: the sequence's state is lost, and the request does not start it anew.
            SequenceOfAnother: both the client and the one that opened the sequence are known, and not the same.
            SequenceFull: `most_waiting` requests of the sequence wait.
            TooManySequences: the request would open a sequence, `most` are open, and none is displaced.
        """
        if len(name) > LONGEST:
            raise BadRequest(f"The id of the sequence has {len(name)} characters; at most {LONGEST} are taken.")
        if not start and name in self._broken:
            raise SequenceBroken(self._lost(name, self._broken[name]))
        sequence = self._open.get(name)
        owner = self._homes[name][1] if name in self._homes else NOBODY if sequence is None else sequence.owner
        if owner != client and owner.known and client.known:
            raise SequenceOfAnother(name)
        if sequence is not None:
            if len(sequence.waiting) >= self.most_waiting:
                raise SequenceFull(
                    f'{self.most_waiting} requests of the sequence "{name}" wait, as many as may'
                    " (`maxSequenceJobQueueSize`). Try again later."
                )
            return
        if len(self._open) >= self.most:
            self.forget(now)
        if len(self._open) >= self.most and self._displaced_by(client) is None:
            raise TooManySequences(
                f'Model "{self._name}" keeps {self.most} sequences at a time (`maxNumSequence`), and all are open: end'
                f" one, with the header {self._headers.end}: true, or try again later."
            )

    def add_request(self, job: Job, name: str, now: float, client: ShareHolder = NOBODY) -> None:
        """Add a request that waits, after `check`; a sequence is opened where there is none of this name."""
        self._broken.pop(name, None)
        sequence = self._open.get(name)
        if sequence is None:
            if len(self._open) >= self.most:
                self._displace(client)
            sequence = self._open[name] = OpenSequence(name, client, now)
            self._held[client] += 1
            home = self._homes.pop(name, None)
            if home is not None:
                worker, owner = home
                self._give(sequence, worker)
                sequence.owner = owner if owner.known else client
        sequence.waiting[job] = None
        sequence.last = now
        self._of[job] = sequence
        self._review(sequence)

    def drop(self, job: Job) -> None:
        """Remove a waiting request: its client left, or its time is over."""
        sequence = self._of.pop(job, None)
        if sequence is not None:
            del sequence.waiting[job]
            self._review(sequence)
            self._close(sequence)

    def plan(self, rooms: Mapping[W, int]) -> dict[W, list[Job]]:
        """Take the requests that these workers run next: one of each sequence, then further ones if they may overlap.

        Args:
            rooms: worker → the most requests. A sequence without a worker goes to the one that keeps the fewest.
        """
        taken: dict[W, list[Job]] = {worker: [] for worker in rooms}
        self._take_own(rooms, taken)
        strangers = self._ready[None]
        while strangers and (free := [worker for worker, room in rooms.items() if len(taken[worker]) < room]):
            worker = min(free, key=lambda each: self._owned[each])
            sequence = next(iter(strangers.values()))
            self._give(sequence, worker)
            taken[worker].append(self._take(sequence))
        self._take_own(rooms, taken)  # further requests of those
        return {worker: jobs for worker, jobs in taken.items() if jobs}

    def done(self, job: Job, now: float, *, end: bool = False) -> None:
        """Note that a request has run; with `end` it was the sequence's last one."""
        sequence = self._of.pop(job, None)
        if sequence is not None:
            sequence.running -= 1
            sequence.last = now
            sequence.ended = sequence.ended or end
            self._review(sequence)
            self._close(sequence)

    def end(self, names: Iterable[str]) -> None:
        """Note that an answer has ended these sequences."""
        for name in names:
            sequence = self._open.get(name)
            if sequence is not None:
                sequence.ended = True
                self._close(sequence)

    def gone(self, worker: W, why: str, now: float) -> list[tuple[Job, SequenceBroken]]:
        """Break the sequences of a worker that has gone; return their waiting requests, each with its error."""
        self.forget(now)
        answers: list[tuple[Job, SequenceBroken]] = []
        for sequence in [each for each in self._open.values() if each.worker == worker]:
            self._remove(sequence)
            for job in sequence.waiting:
                del self._of[job]
                answers.append((job, SequenceBroken(self._lost(sequence.id, why))))
            sequence.waiting.clear()
            if not sequence.ended:
                _remember(self._broken, sequence.id, why)
        self._ready.pop(worker, None)
        del self._owned[worker]
        for name in [name for name, (home, _) in self._homes.items() if home == worker]:
            del self._homes[name]
        return answers

    def clear(self) -> list[Job]:
        """Drop all waiting requests, and return them."""
        jobs = [job for sequence in self._open.values() for job in sequence.waiting]
        for job in jobs:
            self.drop(job)
        return jobs

    def forget(self, now: float) -> None:
        """Forget the quiet sequences whose time is over; their workers are remembered, in case they go on."""
        for sequence in [each for each in self._open.values() if each.quiet]:
            if min(sequence.last + self.idle, sequence.began + self.total) <= now:
                sequence.ended = True
                self._close(sequence)
                if sequence.worker is not None:
                    _remember(self._homes, sequence.id, (sequence.worker, sequence.owner))

    def _lost(self, name: str, why: str) -> str:
        return (
            f'The state of the sequence "{name}" is lost: {why}. Start it anew, with the header'
            f" {self._headers.start}: true."
        )

    def _take_own(self, rooms: Mapping[W, int], taken: Mapping[W, list[Job]]) -> None:
        for worker, room in rooms.items():
            while len(taken[worker]) < room and (ready := self._ready.get(worker)):
                taken[worker].append(self._take(next(iter(ready.values()))))

    def _take(self, sequence: OpenSequence[W]) -> Job:
        job, _ = sequence.waiting.popitem(last=False)
        sequence.running += 1
        self._ready[sequence.worker].pop(sequence.id)  # to the end, if another one can run
        self._review(sequence)
        return job

    def _give(self, sequence: OpenSequence[W], worker: W) -> None:
        """Make a worker the owner of a sequence that has none."""
        here = self._ready[None].pop(sequence.id, None)
        sequence.worker = worker
        self._owned[worker] += 1
        if here is not None:
            self._ready.setdefault(worker, OrderedDict())[sequence.id] = sequence

    def _review(self, sequence: OpenSequence[W]) -> None:
        """Enter a sequence where it belongs, or take it out: whether a request of it can run now."""
        ready = self._ready.setdefault(sequence.worker, OrderedDict())
        if sequence.waiting and (self._overlapping or not sequence.running):
            ready.setdefault(sequence.id, sequence)
        else:
            ready.pop(sequence.id, None)

    def _close(self, sequence: OpenSequence[W]) -> None:
        """Forget a sequence that has ended, or that no request has run of, once it is quiet."""
        if sequence.quiet and (sequence.ended or sequence.worker is None) and self._open.get(sequence.id) is sequence:
            self._remove(sequence)
            if sequence.worker is not None:
                self._owned[sequence.worker] -= 1

    def _remove(self, sequence: OpenSequence[W]) -> None:
        del self._open[sequence.id]
        self._held[sequence.client] -= 1
        if not self._held[sequence.client]:
            del self._held[sequence.client]

    def _displaced_by(self, client: ShareHolder) -> OpenSequence[W] | None:
        return displaced(client, self._held, (each for each in self._open.values() if each.quiet))

    def _displace(self, client: ShareHolder) -> None:
        """End a sequence in favour of a client's new one: the next request of the ended one is told, once."""
        sequence = self._displaced_by(client)
        if sequence is not None:
            sequence.ended = True
            self._close(sequence)
            _remember(self._broken, sequence.id, f"another client needed a place (`maxNumSequence` is {self.most})")


V = TypeVar("V")


def _remember(table: OrderedDict[str, V], name: str, value: V) -> None:
    table[name] = value
    table.move_to_end(name)
    if len(table) > REMEMBERED:
        table.popitem(last=False)
