"""The world's own ledger: each request with its outcome, and each registration of a version, independent of the daemon.

Each response is checked on arrival: the first for its request, belonging to the request, and in time.
"""

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

from tests.lab.simulation.suspicion import Suspicion, check_refused
from tsctl.daemon.core.job import MAX_ATTEMPTS, Job, Reply
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine
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


class Entry:
    """One accepted request.

    Attributes:
        number: the order of acceptance.
        sent, begun: how often the request was sent to a worker, and how often a worker started it.
        company: the number of jobs in the batch last sent with this request; of rows, that ended with its worker.
        with_worker: a worker has the request, as far as the daemon knows.
        held: since when the request has waited beside an idle worker; None if never.
        left: the client has gone.
        same: the key shared by equal requests.
        parked: the request waits or waited for its comparison.
        mark: its place in a sequence, or None.
        heard: of a row that runs on its own, when the daemon last heard of it.
        said, told: pieces of its answer that its worker has said, and that its client has received.
        whole: `said`, when the worker said its end; None before.
        over: when its client left, or had an answer; None before.
    """

    __slots__ = (
        "begun", "company", "heard", "held", "job", "lane", "left", "mark", "name", "number", "over", "parked", "reply",
        "said", "same", "sent", "served", "told", "whole", "with_worker",
    )  # fmt: skip

    def __init__(self, name: str, number: int, served: "Served") -> None:
        self.name = name
        self.number = number
        self.served = served
        self.job: Job = None  # type: ignore[assignment]  # assigned later: the job needs the entry first
        self.lane = "normal"
        self.sent = self.begun = self.company = self.said = self.told = 0
        self.heard = 0.0
        self.mark: Mark | None = None
        self.whole: int | None = None
        self.over: float | None = None
        self.with_worker = self.left = self.parked = False
        self.same: Hashable = name
        self.held: float | None = None
        self.reply: Reply | None = None

    def __repr__(self) -> str:
        words = f"{self.job.phase.name} sent={self.sent} begun={self.begun} attempt={self.job.attempt}"
        return f"<{self.name} of {self.served} {words}{' left' if self.left else ''}>"


class Served:
    """One registration of a version.

    Attributes:
        open: requests that have not ended.
        workers: those whose processes have not ended, as far as the daemon knows.
        dirty: something may have changed since the last check.
        retired: unregistered, and all its work has ended.
        first: lane → number of the last request sent for the first time.
        returned: lane → number of requests returned to the queue.
        suspicion: which requests have ended workers.
        unfit: workers that could not start, did not load, or ended idle before their first answer.
        counts: the expected metrics: requests, answers, batches, jobs, and 504 by place.
        sequences: the record of its sequences; None if it has none.
        timeouts: each response timeout that was ever set.
        ended_with: the names of waiting requests whose sequences ended with the worker that ends now.
    """

    model: ModelVersion  # set as soon as it is made: its engine and its clock refer to this object
    made: ModelSettings  # with which it was made

    def __init__(self, number: int) -> None:
        self.number = number
        self.open: dict[str, Entry] = {}
        self.workers: dict[WatchedWorker, None] = {}
        self.slots: dict[int, str] = {}
        self.first: dict[str, int] = {}
        self.returned: Counter[str] = Counter()
        self.suspicion = Suspicion()
        self.unfit = 0
        self.counts: Counter[str] = Counter()
        self.sequences: SequenceBook | None = None
        self.suspecting: Quarantine | None = None
        self.timeouts: set[float] = set()
        self.ended_with: set[str] = set()
        self.retired = False
        self.dirty = True

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
