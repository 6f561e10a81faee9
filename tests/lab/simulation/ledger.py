"""The world's own ledger: each request with its outcome, and each registration of a version, independent of the daemon.

Each response is checked on arrival: the first for its request, belonging to the request, and in time.

Of requests that end workers there is a record, too, beside the daemon's (daemon/extensions/quarantine). Equality of
requests is drawn with them (clients.py): their words, which are a header, and their bodies. Their names and ids always
differ. The record asks the daemon only whether an operator has cleared the quarantine, and whether hashing is pending.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.lab.simulation.script import SIGKILL
from tsctl.daemon.core.job import MAX_ATTEMPTS, Batch, Fate, Job, Outcome, Reply
from tsctl.daemon.extensions.quarantine.quarantine import DEATHS, REFUSED, Quarantine
from tsctl.daemon.extensions.sequences.marks import USUAL, SequenceMark
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.process.row_window import LEFT

if TYPE_CHECKING:
    from tests.lab.simulation.engine import WatchedWorker
    from tests.lab.simulation.sequences import Mark, SequenceBook
    from tests.lab.simulation.world import World

_LEFT = LEFT.body.decode()
TICK = 0.0021  # seconds: two timer steps, one to expire and one to wake, and float rounding
HASHING = 0.5  # seconds for which the culprit may be unknown after an end: many requests may be hashed first


@dataclass(eq=False, slots=True)
class Entry:
    """One accepted request."""

    name: str
    number: int  # the order of acceptance
    served: "Served"
    job: Job = field(init=False)  # the job needs the entry first
    lane: str = "normal"
    sent: int = 0  # how often to a worker
    begun: int = 0  # how often by a worker
    company: int = 0  # jobs in the batch last sent with it; of rows, those that ended with its worker
    said: int = 0  # pieces of its answer that its worker has said
    told: int = 0  # pieces of its answer that its client has received
    whole: int | None = None  # `said`, when the worker said its end; None before
    heard: float = 0.0  # of a row that runs on its own, when the daemon last heard of it
    mark: "Mark | None" = None  # its place in a sequence
    over: float | None = None  # when its client left, or had an answer; None before
    with_worker: bool = False  # a worker has it, as far as the daemon knows
    left: bool = False  # its client has gone
    parked: bool = False  # it waits or waited for its comparison
    same: Hashable = None  # the key shared by equal requests
    held: float | None = None  # since when it has waited beside an idle worker; None if never
    reply: Reply | None = None

    def __repr__(self) -> str:
        words = f"{self.job.phase.name} sent={self.sent} begun={self.begun} attempt={self.job.attempt}"
        return f"<{self.name} of {self.served} {words}{' left' if self.left else ''}>"


class Suspicion:
    """The suspect requests of one registration of a version, since an operator last cleared the quarantine.

    Attributes:
        alone: number of workers that ended with a request alone, and the time of the last end.
        proved: the same, since the request's last answer.
        feared: requests with which a worker has ended, since their last answer.
    """

    def __init__(self) -> None:
        self.alone: dict[Hashable, tuple[int, float]] = {}
        self.proved: dict[Hashable, tuple[int, float]] = {}
        self.feared: set[Hashable] = set()
        self._era = -1

    def look(self, served: "Served") -> None:
        """Forget everything if an operator has cleared the quarantine."""
        era = -1 if served.suspecting is None else served.suspecting._era
        if era != self._era:
            self._era = era
            self.alone.clear()
            self.proved.clear()
            self.feared.clear()


@dataclass(eq=False)
class Served:
    """One registration of a version."""

    number: int
    model: ModelVersion = field(init=False)  # set as soon as it is made: its engine and its clock refer to this object
    made: ModelSettings = field(init=False)  # with which it was made
    open: dict[str, Entry] = field(default_factory=dict)  # requests that have not ended
    workers: "dict[WatchedWorker, None]" = field(default_factory=dict)  # not ended, as far as the daemon knows
    slots: dict[int, str] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)  # lane → number of the last request sent for the first time
    suspicion: Suspicion = field(default_factory=Suspicion)  # which requests have ended workers
    unfit: int = 0  # workers that could not start, did not load, or ended idle before their first answer
    counts: Counter[str] = field(default_factory=Counter)  # expected metrics: requests, answers, batches, jobs, 504
    sequences: "SequenceBook | None" = None  # the record of its sequences, if it has any
    suspecting: Quarantine | None = None
    timeouts: set[float] = field(default_factory=set)  # each response timeout that was ever set
    ended_with: set[str] = field(default_factory=set)  # requests whose sequences ended with the worker that ends now
    retired: bool = False  # unregistered, and all its work has ended
    dirty: bool = True  # something may have changed since the last check

    def __repr__(self) -> str:
        return f"{self.model.name}/{self.model.version}#{self.number}"

    @property
    def by_rows(self) -> bool:
        """Whether its workers run rows on their own."""
        settings = self.model.settings
        return bool(settings.continuous or settings.asynchronous)

    @property
    def quarantine(self) -> bool:
        """Whether requests that end workers are kept from others; a sequence's cannot be."""
        return bool(self.model.settings.quarantine) and self.sequences is None

    @property
    def key(self) -> tuple[str, str]:
        return self.model.name, self.model.version


def note_answer(world: "World", entry: Entry, reply: Reply) -> None:
    """Record a request's response and check it."""
    served, job, now = entry.served, entry.job, world.loop.now()
    text = reply.body.decode()
    world.note("%s is told %d%s", entry.name, reply.status, "" if text == entry.name else f": {text}")
    served.dirty = True
    if entry.reply is not None:
        world.broken("a request is answered once", entry=entry, first=entry.reply, second=reply)
    if entry.left:
        world.broken("whoever has left is told nothing", entry=entry, reply=reply)
    entry.reply, entry.over = reply, now
    served.open.pop(entry.name, None)
    if not entry.with_worker:
        world.forget(entry)
    late = now - max(job.deadline, job.arrived, world.loop.stalled)
    if late > TICK:
        world.broken("an answer is not later than the deadline", entry=entry, late=late, reply=reply)
    if reply.status == 504:
        served.counts["expired with a worker" if entry.with_worker else "expired in the queue"] += 1
        served.counts["answers"] += entry.with_worker
        early = job.deadline - now - world.longest * 1.01
        if "queueTimeout" in text:
            early = job.queued + served.model.settings.queue_timeout - now
        if early > 0.0:
            world.broken("nobody is told for nothing that there is no time", entry=entry, early=early, reply=reply)
        if job.budget is None and not served.model.settings.queue_timeout:
            world.broken("only what has a limit expires", entry=entry, reply=reply)
        return
    served.counts["answers"] += entry.with_worker
    if "was not run: the same request" in text:
        served.counts["refused as suspects"] += 1
        check_refused(world, entry)
    elif reply.status == 200 or reply.phrase == "Prediction failed":
        if text != entry.name:
            world.broken("an answer goes to whoever asked", entry=entry, reply=reply)
        if not entry.begun:
            world.broken("only what was begun has an answer", entry=entry)
        sequence = entry.job.mark
        if isinstance(sequence, SequenceMark) and sequence.made and (USUAL.id, sequence.id) not in reply.headers:
            world.broken("a client is told the id of a new sequence", entry=entry, reply=reply)
        if served.by_rows and entry.told != entry.whole:
            world.broken("an answer comes after all of its pieces", entry=entry, told=entry.told, of=entry.whole)
    elif text == _LEFT:
        reader = world.readers.get(entry.name)
        if reader is None or not reader.cut:
            world.broken("only who does not read is told that the rest is dropped", entry=entry, reply=reply)
    elif "was not answered within" in text:
        if not entry.with_worker or now - entry.heard < min(served.timeouts) - 1e-6:
            world.broken("a row is given up when nothing is heard of it", entry=entry, heard=entry.heard)
    elif "The state of the sequence" in text:
        if entry.name not in served.ended_with:
            world.broken("a sequence is broken by the end of its worker only", entry=entry, reply=reply)
    elif "died" in text or "did not answer within" in text:
        if "within the grace time" in text and not served.model.stopping:
            world.broken("a worker that is not wanted any more finishes what it has", entry=entry, reply=reply)
        alone = "did not answer within" in text and entry.company == 1
        if "the same request is refused" in text:
            check_refused(world, entry)
        elif world.retry(served) and not (job.begun or alone) and job.attempt < MAX_ATTEMPTS:
            world.broken("a request is tried again if its worker went away", entry=entry, reply=reply)
    elif not served.model.stopping and not served.model.pool.hopeless:
        world.broken("a request that waits is refused only where nobody will come for it", entry=entry, reply=reply)


# Requests that end workers.


def note_ended(world: "World", worker: "WatchedWorker", batch: Batch, outcomes: Sequence[Outcome]) -> None:
    """Record the end of a batch, by an answer or the worker's death, before the daemon reacts."""
    served, fate, now = worker._served, outcomes[0].fate, world.loop.now()
    book = served.suspicion
    book.look(served)
    entries = [world.entries[job.id] for job in batch.jobs]
    code = worker.process.code
    if fate is Fate.ANSWERED:
        for entry in entries:
            book.proved.pop(entry.same, None)
            book.feared.discard(entry.same)
    if (fate in (Fate.ANSWERED, Fate.LATE)) != (outcomes[0].reply is not None):
        world.broken("only what is answered or late has a reply", worker=worker, outcome=outcomes[0])
    if outcomes[0].reply is not None or fate is Fate.CANCELLED:  # the worker has said so, and perhaps ended since
        return
    of_itself = code not in (None, SIGKILL) and not worker._process.killed_because and not worker.process.rank_killed
    crashed = fate in (Fate.CRASHED, Fate.CRASHED_ALONE)
    if crashed != (of_itself and fate is not Fate.UNSTARTED):
        world.broken("who ends of itself makes suspects of what it had begun, and no other does", worker=worker,
                     outcome=outcomes[0], code=code)  # fmt: skip
    if fate is Fate.CRASHED_ALONE and (len(batch.jobs) > 1 or (served.by_rows and worker.together > 1)):
        world.broken("a request is to blame only for what it did alone", worker=worker, batch=batch)
    if not crashed or not served.quarantine:
        return
    for entry in entries:
        if entry.lane == "solo":
            continue
        book.feared.add(entry.same)
        if fate is Fate.CRASHED_ALONE:
            for counts in (book.alone, book.proved):
                counts[entry.same] = (counts.get(entry.same, (0, 0.0))[0] + 1, now)


def check_refused(world: "World", entry: Entry) -> None:
    """Check the rejection of a request whose equals have ended workers."""
    served, now = entry.served, world.loop.now()
    served.suspicion.look(served)
    deaths, last = served.suspicion.alone.get(entry.same, (0, 0.0))
    if deaths < DEATHS or now - last > REFUSED + HASHING or not served.quarantine:
        world.broken("only what has ended two workers alone is refused", entry=entry, same=entry.same, deaths=deaths)


def check_accepted(world: "World", entry: Entry) -> None:
    """Check the acceptance of a request that is not parked."""
    served, now = entry.served, world.loop.now()
    served.suspicion.look(served)
    deaths, last = served.suspicion.proved.get(entry.same, (0, 0.0))
    compared = entry.lane != "solo" and entry.job not in served.model.queue.parked
    if compared and deaths >= DEATHS and HASHING < now - last < REFUSED:
        world.broken("what has ended two workers alone is refused for a minute", entry=entry, deaths=deaths)


def check_sent(world: "World", worker: "WatchedWorker", entries: Sequence[Entry], batch: Batch) -> None:
    """Check a batch sent to a worker."""
    served = worker._served
    served.suspicion.look(served)
    quarantine = served.suspecting
    feared = [entry for entry in entries if entry.same in served.suspicion.feared and entry.lane != "solo"]
    beside = len(entries) > 1 or (served.by_rows and bool(worker.rows))
    if feared and beside and not (quarantine and quarantine._pending):
        world.broken("what may end its worker travels alone", feared=feared, batch=batch)
    if (batch.reason == "ahead" or (served.by_rows and worker.rows)) and worker.lone:
        world.broken("nothing goes ahead behind what may end its worker", worker=worker, batch=batch)
    worker.lone = batch.jobs[0].apart is not None or (
        batch.reason == "retry" and quarantine is not None and quarantine.watching
    )


def note_parked(served: Served) -> None:
    """Mark the requests waiting for a comparison: they lose their place in the queue."""
    for job in served.model.queue.parked:
        served.open[job.id].parked = True
