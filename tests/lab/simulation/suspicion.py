"""The world's own record of requests that end workers, beside the daemon's (batching/quarantine.py).

Equality of requests is drawn with them (clients.py): their words, which are a header, and their bodies. Their names and
ids always differ. The record asks the daemon only whether an operator has cleared the quarantine, and whether hashing
is pending.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from tests.lab.simulation.script import SIGKILL
from tsctl.daemon.core.job import Batch, Fate, Outcome
from tsctl.daemon.extensions.quarantine.quarantine import DEATHS, REFUSED

if TYPE_CHECKING:
    from tests.lab.simulation.engine import WatchedWorker
    from tests.lab.simulation.ledger import Entry, Served
    from tests.lab.simulation.world import World

HASHING = 0.5  # seconds for which the culprit may be unknown after an end: many requests may be hashed first


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


def check_refused(world: "World", entry: "Entry") -> None:
    """Check the rejection of a request whose equals have ended workers."""
    served, now = entry.served, world.loop.now()
    served.suspicion.look(served)
    deaths, last = served.suspicion.alone.get(entry.same, (0, 0.0))
    if deaths < DEATHS or now - last > REFUSED + HASHING or not served.quarantine:
        world.broken("only what has ended two workers alone is refused", entry=entry, same=entry.same, deaths=deaths)


def check_accepted(world: "World", entry: "Entry") -> None:
    """Check the acceptance of a request that is not parked."""
    served, now = entry.served, world.loop.now()
    served.suspicion.look(served)
    deaths, last = served.suspicion.proved.get(entry.same, (0, 0.0))
    compared = entry.lane != "solo" and entry.job not in served.model.queue.parked
    if compared and deaths >= DEATHS and HASHING < now - last < REFUSED:
        world.broken("what has ended two workers alone is refused for a minute", entry=entry, deaths=deaths)


def check_sent(world: "World", worker: "WatchedWorker", entries: "Sequence[Entry]", batch: Batch) -> None:
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


def note_parked(served: "Served") -> None:
    """Mark the requests waiting for a comparison: they lose their place in the queue."""
    for job in served.model.queue.parked:
        served.open[job.id].parked = True
