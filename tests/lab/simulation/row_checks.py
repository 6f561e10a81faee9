"""The checks of rows that run on their own: their places, and the times at which nothing was heard."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.lab.simulation.ledger import TICK
from tests.lab.simulation.rows import places
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome
from tsctl.daemon.workers.state import WorkerState

if TYPE_CHECKING:
    from tests.lab.simulation.engine import WatchedWorker
    from tests.lab.simulation.ledger import Entry, Served
    from tests.lab.simulation.world import World

ROUNDING = 1e-6  # seconds


def room_of(served: "Served", worker: "WatchedWorker") -> int:
    """Return how many more rows a worker may be sent; with a negative number there are more than places."""
    return places(served.made, served.model.settings.batch_size) - len(worker.rows)


def check_row_sent(world: "World", served: "Served", worker: "WatchedWorker", batch: Batch) -> None:
    """Check a row that is sent: there must be a place for it."""
    if room_of(served, worker) < 1:
        world.broken("a worker has no more rows than places", worker=worker, rows=list(worker.rows), batch=batch)
    if not worker.rows:
        worker.heard = world.loop.now()


def note_heard(world: "World", worker: object, job: Job) -> None:
    """Note that the daemon has heard of a row."""
    entry = world.entries.get(job.id)
    if entry is not None and not entry.left and entry.reply is None:
        entry.heard = worker.heard = world.loop.now()  # type: ignore[attr-defined]


def note_row_ended(world: "World", worker: "WatchedWorker", outcome: Outcome, entries: "Sequence[Entry]") -> None:
    """Note that a worker gives requests back; of a worker that runs rows on their own, one at a time."""
    served, now = worker._served, world.loop.now()
    if outcome.fate in (Fate.ANSWERED, Fate.CANCELLED):  # the worker says so, and goes on
        worker.heard = now
        worker.together = 0
    else:
        worker.together = max(worker.together, len(worker.rows))
    for entry in entries:
        del worker.rows[entry.name]
        if served.by_rows and outcome.fate is Fate.LATE:
            entry.company = worker.together
            if now - worker.heard < min(served.timeouts) - ROUNDING:
                world.broken("a worker is replaced when nothing is heard of it", worker=worker, heard=worker.heard)
    if served.by_rows:
        worker.lone = False


def check_heard(world: "World", served: "Served", entry: "Entry") -> None:
    """Check, at rest, that nobody waits for a row of which nothing is heard; a slow client may be the cause itself."""
    reader = world.readers.get(entry.name)
    silent = world.loop.now() - max(entry.heard, world.loop.stalled)
    if silent > max(served.timeouts) + TICK and not entry.left and not (reader is not None and reader.slow):
        world.broken("nobody waits for a row of which nothing is heard", entry=entry, silent=silent)


def check_places(world: "World", served: "Served", waiting: "Sequence[Entry]") -> None:
    """Check, at rest, that no request waits beside a place for it: of rows, or where a sequence may go on."""
    free = {}
    for slot in served.model.pool.slots:
        worker = slot.worker
        if worker is None or worker.state is not WorkerState.READY:
            continue
        room = room_of(served, worker) if served.by_rows else not worker.in_flight  # type: ignore[arg-type]
        if room > 0 and not worker.lone:  # type: ignore[attr-defined]
            free[worker] = room
    if not free:
        return
    due: Sequence[Entry]
    if served.sequences is not None:
        due = [*served.sequences.due(free), *(entry for entry in waiting if entry.mark is None)]  # type: ignore[arg-type]
    elif any(entry.job.apart is not None or entry.job.attempt for entry in waiting):  # it may have to run alone
        due = [] if all(worker.in_flight for worker in free) else waiting
    else:
        due = waiting
    if due:
        world.broken("no request waits beside a free place", due=due, waiting=waiting, pool=served.model.pool)
