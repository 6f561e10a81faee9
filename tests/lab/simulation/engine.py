"""Production's workers over simulated processes; calls and events between pool and worker are observed and checked.

The rules of workers/engine.py: `loaded` or `load_failed` at most once; each batch ends once; `exited` comes last.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tests.lab.simulation.ledger import TICK, Entry, Served, check_sent, note_ended, note_parked
from tests.lab.simulation.process import Process
from tests.lab.simulation.rows import places
from tsctl.daemon.batching.traffic.times import rounded
from tsctl.daemon.core.job import MAX_ATTEMPTS, Batch, Fate, Job, JobPhase, Outcome, Reply
from tsctl.daemon.workers.engine import BatchEvents, Exit, LoadFailure, Worker, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.templates.tree import Templates
from tsctl.daemon.workers.rows.worker import RowWorker
from tsctl.daemon.workers.state import WorkerState

if TYPE_CHECKING:
    from tests.lab.simulation.world import World

ROUNDING = 1e-6  # seconds


class Engine:
    """Starts workers for one registration of a version."""

    def __init__(self, world: "World", served: Served) -> None:
        self._world = world
        self._served = served

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> "WatchedWorker":
        world, served = self._world, self._served
        if served.retired:
            world.broken("nothing is started for a version that has gone", served=served)
        process = Process(world, spec, served.made, len(world.processes) + 1)
        world.processes.append(process)
        served.dirty = True
        served.unfit += 1  # until the process is born: the constructor may raise
        kind = WatchedWorker if spec.mode == "batch" else WatchedRows
        worker = kind(spec, Watch(world, served, events, batches), world, served, process)
        served.unfit -= 1
        served.workers[worker] = None
        return worker


class WatchedWorker(LocalWorker):
    """Production's worker with observed input.

    Attributes:
        lone: what it runs must run alone on the worker.
        rows: the names of the rows it has, as far as the daemon knows; those it had when it ended, or was overdue.
        heard: when the daemon last heard of any row, or the first one was sent.
    """

    def __init__(self, spec: WorkerSpec, events: "Watch", world: "World", served: Served, process: Process) -> None:
        self.process = process
        self.lone = False
        self.rows: dict[str, None] = {}
        self.together = 0
        self.heard = 0.0
        self._world = world
        self._served = served
        super().__init__(spec, events, events, world.loop, world.loop, cast(Templates, process), None)
        self._shares = True  # the memory of the world, which no process maps

    def predict(self, batch: Batch) -> None:
        _check_sent(self._world, self._served, self, batch)
        super().predict(batch)

    def _response_timeout(self) -> None:
        running, calm = self.in_flight.running, self._world.loop.now() - self._world.loop.stalled > TICK
        if running is not None and calm and self.process.script.waits_for_clients(running.id):
            self._world.broken("a wait for clients is not the worker's time", worker=self)
        super()._response_timeout()


class WatchedRows(WatchedWorker, RowWorker):
    """The same for a worker that runs rows on their own."""


def room_of(served: "Served", worker: "WatchedWorker") -> int:
    """Return how many more rows a worker may be sent; with a negative number there are more than places."""
    return places(served.made, served.model.settings.batch_size) - len(worker.rows)


def _check_sent(world: "World", served: Served, worker: WatchedWorker, batch: Batch) -> None:
    """Check a batch sent to a worker; its jobs are SENT already."""
    entries = [world.entries[job.id] for job in batch.jobs]
    names = [entry.name for entry in entries]
    world.note("%r: is sent %d (%s): %s", worker.process, batch.id, batch.reason, " ".join(names))
    now, size = world.loop.now(), 1 if served.by_rows else served.model.settings.batch_size
    served.dirty = True
    served.counts["batches"] += 1
    served.counts["jobs"] += len(names)
    if served.retired:
        world.broken("nothing is sent for a version that has gone", served=served, batch=batch)
    if not 1 <= len(names) <= size or len(set(names)) < len(names):
        world.broken("a batch has from one job to the batch size", batch=batch, batch_size=size, names=names)
    if worker.state is not WorkerState.READY:
        world.broken("only a ready worker gets a batch", worker=worker, batch=batch)
    if worker._process.killed_because or worker.process.line is None or worker.process.line.closed:
        world.broken("nothing is sent to a worker that is known to end", worker=worker, batch=batch)
    best = served.model.traffic.best
    whole = len(names) == size or (best is not None and (len(names) == best.size or rounded(len(names)) == best._out))
    if batch.reason == "ahead" and not (whole and worker.in_flight):
        world.broken("only whole batches go ahead, to busy workers", worker=worker, batch=batch, batch_size=size)
    if served.by_rows:
        if room_of(served, worker) < 1:
            world.broken("a worker has no more rows than places", worker=worker, rows=list(worker.rows), batch=batch)
        if not worker.rows:
            worker.heard = world.loop.now()
    elif batch.reason != "ahead" and worker.in_flight:
        world.broken("a batch that does not go ahead goes to an idle worker", worker=worker, batch=batch)
    check_sent(world, worker, entries, batch)
    for entry in entries:
        job = entry.job
        if job.phase is not JobPhase.SENT or entry.reply is not None or entry.left:
            world.broken("only what waits is sent", entry=entry, batch=batch)
        if job.attempt > (MAX_ATTEMPTS if served.sequences is None else 1):
            world.broken("a request is tried twice at most", entry=entry, batch=batch)
        if len(names) > 1 and (job.attempt > 1 or job.exclusive):
            world.broken("what a worker died with travels alone", entry=entry, batch=batch)
        if now > max(job.deadline, world.loop.stalled + TICK):
            world.broken("what has no time left is not sent", entry=entry, deadline=job.deadline)
    if batch.reason == "ahead" and served.model.pool.idle:
        world.broken("nothing goes ahead while somebody is idle", pool=served.model.pool, batch=batch)
    if served.sequences is not None:
        served.sequences.sent(worker, entries)
    else:
        _check_order(world, served, entries)
    for entry in entries:
        entry.sent += 1
        entry.company = len(names)
        entry.with_worker = True
        entry.heard = now
        worker.rows[entry.name] = None


def _check_order(world: "World", served: Served, sent: Sequence[Entry]) -> None:
    """Check the order: lone jobs first, then returned ones, then first in, first out."""
    if sent[0].job.exclusive or sent[0].job.attempt > 1:
        return
    parked = served.model.queue.parked
    waiting = [
        entry for entry in served.open.values() if entry.job.phase is JobPhase.QUEUED and entry.job not in parked
    ]
    suspect = sent[0].job.apart is not None
    alone = [
        entry for entry in waiting if (entry.job.exclusive or entry.job.attempt if suspect else entry.job.runs_alone)
    ]
    if alone:
        world.broken("those that travel alone go first", sent=sent, waiting=alone)
    if suspect:
        return
    fresh = [entry for entry in sent if not (entry.sent or entry.parked)]
    lanes = {entry.lane for entry in fresh}
    returned = [entry for entry in waiting if entry.sent and entry.lane in lanes and not entry.parked]
    if returned:
        world.broken("what has come back is sent first", sent=sent, waiting=returned)
    patience, now = served.model.queue.patience, world.loop.now()
    if "normal" in lanes:
        passed = [entry for entry in waiting if entry.lane == "low" and now - entry.job.queued > patience]
        if passed:
            world.broken("whoever has let others go before for long enough goes first", sent=sent, waiting=passed)
    for entry in fresh:
        before = served.first.get(entry.lane, 0)
        if entry.number < before:
            world.broken("first in is first out", entry=entry, before=before)
        served.first[entry.lane] = entry.number


class Watch:
    """Observes the events on their way to the pool and the dispatcher."""

    def __init__(self, world: "World", served: Served, events: WorkerListener, batches: BatchEvents) -> None:
        self._world = world
        self._served = served
        self._events = events
        self._batches = batches
        self._loaded = self._exited = self._worked = False

    def _heard(self, worker: Worker, what: str) -> Process:
        assert isinstance(worker, WatchedWorker)
        self._served.dirty = True
        if self._exited:
            self._world.broken("a worker says nothing after its exit", worker=worker, what=what)
        return worker.process

    def loaded(self, worker: Worker) -> None:
        process = self._heard(worker, "loaded")
        self._world.note("%r: is ready", process)
        if self._loaded:
            self._world.broken("a worker loads once", worker=worker)
        self._loaded = True
        self._events.loaded(worker)

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None:
        process = self._heard(worker, "load failed")
        self._world.note("%r: did not load: %s", process, failure.error)
        self._served.unfit += 1
        if self._loaded:
            self._world.broken("a worker loads once", worker=worker)
        self._loaded = True
        self._events.load_failed(worker, failure)

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        process = self._heard(worker, "ended")
        assert isinstance(worker, WatchedWorker)
        world = self._world
        entries = [world.entries[job.id] for job in batch.jobs]
        if not all(entry.with_worker for entry in entries):
            world.broken("each batch is ended once", worker=worker, batch=batch)
        if [outcome.job for outcome in outcomes] != list(batch.jobs):
            world.broken("there is an outcome for each job", batch=batch, outcomes=outcomes)
        still = not self._served.by_rows and (bool(worker.in_flight) or worker.in_flight.overdue is not None)
        ahead = outcomes[0].reply is None and still
        self._note_rows(worker, outcomes[0], entries)
        note_ended(world, worker, batch, outcomes)
        self._worked |= outcomes[0].fate is not Fate.UNSTARTED
        if self._served.sequences is not None:
            for entry, outcome in zip(entries, outcomes, strict=True):
                self._served.sequences.ended(entry, outcome)
        before = [entry.job.attempt - 1 for entry in entries]
        world.note("%r: batch %d is %s", process, batch.id, _word(outcomes[0], ahead))
        self._batches.ended(worker, batch, outcomes, seconds)
        note_parked(self._served)
        for entry, attempts in zip(entries, before, strict=True):
            if entry.job.phase is JobPhase.QUEUED:
                if ahead and entry.job.attempt != attempts:
                    world.broken("what was sent ahead and not begun is not charged", entry=entry, batch=batch)
            elif ahead and not entry.left and entry.reply is not None and entry.reply.status != 504:
                world.broken("what was sent ahead and not begun comes back", entry=entry, batch=batch)
            entry.with_worker = False
            if entry.job.phase is JobPhase.ENDED:
                self._served.open.pop(entry.name, None)
                world.forget(entry)

    def _note_rows(self, worker: WatchedWorker, outcome: Outcome, entries: Sequence[Entry]) -> None:
        """Note that a worker gives requests back; of a worker that runs rows on their own, one at a time."""
        world, served, now = self._world, self._served, self._world.loop.now()
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

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        self._heard(worker, "streamed")
        if piece.body and piece.body.partition(b" ")[0] != job.id.encode():
            self._world.broken("a piece goes to whoever asked", job=job, piece=piece)
        entry = self._world.entries.get(job.id)
        if entry is not None and not entry.left and entry.reply is None:
            entry.heard = worker.heard = self._world.loop.now()  # type: ignore[attr-defined]
        self._batches.streamed(worker, job, piece)

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:
        process = self._heard(worker, "late")
        self._world.note("%r: %s is overdue", process, job.id)
        self._batches.late(worker, job, reply)

    def lost(self, worker: Worker) -> None:
        process = self._heard(worker, "lost")
        self._world.note("%r: is lost", process)
        self._events.lost(worker)

    def flow_changed(self, worker: Worker) -> None:
        self._world.note("%r: reads slowly, or again", self._heard(worker, "flow changed"))
        self._events.flow_changed(worker)

    def exited(self, worker: Worker, how: Exit) -> None:
        process = self._heard(worker, "exited")
        assert isinstance(worker, WatchedWorker)
        self._world.note("%r: has ended: %s", process, how.reason)
        if worker.in_flight:
            self._world.broken("a worker gives back what it has before it ends", worker=worker)
        if self._worked != (how.busy or worker.answered):
            world = self._world
            world.broken("it is known whether a worker ended with work", worker=worker, how=how, worked=self._worked)
        self._served.unfit += not self._worked
        self._exited = True
        del self._served.workers[worker]
        book = self._served.sequences
        lost = [] if book is None else book.gone(worker)
        self._served.ended_with = {entry.name for entry in lost}
        self._events.exited(worker, how)
        self._served.ended_with.clear()
        if any(entry.job.phase is not JobPhase.ENDED for entry in lost):
            self._world.broken("a worker's end ends its sequences", worker=worker, waiting=lost)


def _word(outcome: Outcome, ahead: bool) -> str:
    if outcome.reply is not None:
        return "overdue" if outcome.fate is Fate.LATE else "answered"
    if outcome.fate is Fate.CANCELLED:
        return "dropped"
    return "given back, not begun" if ahead else "given back"
