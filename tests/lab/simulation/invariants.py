"""The invariants of a version at every rest of the loop, when no more calls are due; and of all at the end of a run."""

import sys
from collections.abc import Sequence
from itertools import pairwise

from tests.lab.simulation.engine import WatchedWorker, room_of
from tests.lab.simulation.ledger import TICK, Entry, Served
from tests.lab.simulation.world import World
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core.job import JobPhase
from tsctl.daemon.extensions.sequences.service import sequences_of
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.persistence.snapshot import decode_snapshot
from tsctl.daemon.workers.slot import RESTART_LIMIT, SlotState
from tsctl.daemon.workers.state import WorkerState

_HELD = 4  # references to an ended job: the world's list, its entry, and two here
# The slot states possible since the last rest; a slot starts a worker at once, so it never rests EMPTY.
NEXT = {
    "": ("STARTING", "BACKOFF", "GAVE_UP"),
    "STARTING": ("UP", "BACKOFF", "GAVE_UP"),
    "UP": ("STARTING", "BACKOFF", "GAVE_UP"),
    "BACKOFF": ("STARTING", "GAVE_UP"),
    "GAVE_UP": ("STARTING", "BACKOFF"),
}
_WORKERS = {
    # An overdue worker is being ended.
    SlotState.STARTING: (WorkerState.STARTING, WorkerState.LOADING, WorkerState.DRAINING),
    SlotState.UP: (WorkerState.READY, WorkerState.DRAINING),
}


def check(world: World, served: Served) -> None:
    """Check one version, if anything may have changed."""
    if served.dirty:
        served.dirty = False
        _check_requests(world, served)
        _check_due(world, served)
        _check_pool(world, served)


def _check_requests(world: World, served: Served) -> None:
    model, now = served.model, world.loop.now()
    queue, dispatcher = model.queue, model.dispatcher
    waiting = sent = size = watched_waiting = watched_sent = 0
    ended = []
    limit = model.settings.queue_timeout
    for entry in served.open.values():
        job = entry.job
        if job.phase is JobPhase.QUEUED:
            waiting += 1
            size += job.size
            watched_waiting += job.budget is not None
            if limit and now - max(job.queued + limit, world.loop.stalled) > TICK:
                world.broken("nobody waits beyond the queue timeout", entry=entry, waited=now - job.queued)
        elif job.phase is JobPhase.SENT:
            sent += 1
            watched_sent += job.budget is not None and not entry.left
            if served.by_rows:
                _check_heard(world, served, entry)
        else:
            ended.append(entry)
        if now - max(job.deadline, world.loop.stalled) > TICK and not entry.left:
            world.broken("nobody waits beyond the deadline", entry=entry, late=now - job.deadline)
    if ended:
        world.broken("whoever has ended was told, or has left", ended=ended)
    if queue.waiting != waiting or queue.bytes != size:
        world.broken("the queue counts those that wait", queue=queue, waiting=waiting, bytes=size)
    if not in_order(queue):
        world.broken("each lane is in the order of arrival", queue=queue)
    in_hands = {job.id for worker in served.workers for batch in worker.in_flight for job in batch.jobs}
    had = sum(len(batch.jobs) for worker in served.workers for batch in worker.in_flight)
    if dispatcher.running != had or len(in_hands) != had:
        world.broken("the dispatcher counts those with a worker", running=dispatcher.running, in_hands=had)
    lost = [entry for entry in served.open.values() if entry.job.phase is JobPhase.SENT and entry.name not in in_hands]
    if lost:
        world.broken("no request is lost", lost=lost)
    if len(queue.deadlines) != watched_waiting or len(dispatcher.expiry.sent) != watched_sent:
        world.broken("deadlines are watched where there are any", expiry=dispatcher.expiry, waiting=watched_waiting,
                     sent=watched_sent)  # fmt: skip
    _check_callers(world, served)
    if sent < len(dispatcher._left):
        world.broken("those that have left are forgotten when they end", left=len(dispatcher._left), sent=sent)


def in_order(queue: Queue) -> bool:
    """Return whether each lane is in the order of arrival: the queue timeout looks at the first job of a lane only."""
    return all(
        earlier.queued <= later.queued
        for lane in (reversed(queue._alone), queue._apart, queue._aged, queue._normal, queue._low)
        for earlier, later in pairwise(lane)
    )


def _check_callers(world: World, served: Served) -> None:
    callers = served.model.traffic.callers
    strangers = sum(
        entry.job.phase is JobPhase.QUEUED and not entry.job.caller_stats.regular for entry in served.open.values()
    )
    present = {id(entry.job.caller_stats) for entry in served.open.values() if entry.job.caller_stats.regular}
    if callers.strangers != strangers or callers.present != len(present):
        world.broken("who is there is counted", callers=callers, strangers=strangers, present=len(present))
    if not callers.present <= callers.regulars <= callers.open:
        world.broken("who is there has a connection that is counted", callers=callers)


def _check_due(world: World, served: Served) -> None:
    """Check that no batch is due while a worker is idle, and no job is held too long."""
    model, now = served.model, world.loop.now()
    if not model.pool.idle:
        return
    queued = [entry for entry in served.open.values() if entry.job.phase is JobPhase.QUEUED]
    waiting = [entry for entry in queued if entry.job not in model.queue.parked]
    if not waiting:
        return
    if served.by_rows or served.sequences is not None:
        _check_places(world, served, waiting)
        return
    settings = model.settings
    reason = (
        "it is whole" if len(waiting) >= settings.batch_size
        else "the policy does not wait" if settings.policy == "greedy"
        else "one travels alone" if any(entry.job.runs_alone for entry in waiting)
        else "the version stops" if model.stopping
        else ""
    )  # fmt: skip
    if reason:
        world.broken("no idle worker stands beside a batch that is due", because=reason, waiting=waiting,
                     pool=model.pool)  # fmt: skip
    for entry in waiting:
        if entry.held is None:
            entry.held = now
        held = now - max(entry.held + settings.max_delay, world.loop.stalled)
        if held > TICK:
            world.broken("nobody is held for more than the maximum delay", entry=entry, held=now - entry.held,
                         max_delay=settings.max_delay)  # fmt: skip


def _check_heard(world: World, served: Served, entry: Entry) -> None:
    """Check, at rest, that nobody waits for a row of which nothing is heard; a slow client may be the cause itself."""
    reader = world.readers.get(entry.name)
    silent = world.loop.now() - max(entry.heard, world.loop.stalled)
    if silent > max(served.timeouts) + TICK and not entry.left and not (reader is not None and reader.slow):
        world.broken("nobody waits for a row of which nothing is heard", entry=entry, silent=silent)


def _check_places(world: World, served: Served, waiting: Sequence[Entry]) -> None:
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


def _check_pool(world: World, served: Served) -> None:
    pool = served.model.pool
    idle = granting = 0
    seen: dict[int, str] = {}
    for slot in pool.slots:
        state, before = slot.state.name, served.slots.get(id(slot), "")
        seen[id(slot)] = state
        if state != before and state not in NEXT[before]:
            world.broken("a slot goes along the arrows", before=before, after=state)
        worker = slot.worker
        expected = _WORKERS.get(slot.state)
        if expected is not None and (worker is None or worker.state not in expected):
            world.broken("a slot knows its worker's state", slot=slot)
        if slot.state is SlotState.BACKOFF and (worker is not None or pool._timer is None):
            world.broken("who backs off is woken", slot=slot)
        if slot.state is SlotState.GAVE_UP and not served.unfit:
            world.broken("a version fails only where workers cannot load, or cannot live without work", slot=slot)
        if len(slot.failures) >= RESTART_LIMIT and slot.state is not SlotState.GAVE_UP:
            world.broken("a slot gives up after so many early exits", slot=slot)
        if slot.state is SlotState.UP and worker is not None and worker.state is WorkerState.READY:
            assert isinstance(worker, WatchedWorker)
            if served.by_rows:
                idle += 0 if worker.lone else max(0, room_of(served, worker))
                continue
            idle += not worker.in_flight
            batches = list(worker.in_flight)
            ahead = served.sequences is None or [batch.reason for batch in batches] == ["solo"]
            granting += len(batches) == 1 and not worker.lone and ahead
    served.slots = seen
    if len(pool.slots) != pool.wanted:
        world.broken("there are as many places as are wanted", pool=pool, wanted=pool.wanted)
    if pool.idle != idle or pool.granting != granting:
        world.broken("the pool knows who is idle", pool=pool, idle=idle, granting=granting)


# At the end.


def check_healed(world: World) -> None:
    """Check that each version has its wanted workers, and all requests were answered."""
    for served in world.served:
        pool = served.model.pool
        if served.open:
            world.broken("everybody is answered in the end", served=served, open=list(served.open.values()))
        for slot in pool.slots:
            given_up = slot.state is SlotState.GAVE_UP and (
                len(slot.failures) >= RESTART_LIMIT or "load_fails" in world.plan.faults
            )
            if slot.state is not SlotState.UP and not given_up:
                world.broken("there are as many workers as are wanted", served=served, slot=slot, pool=pool)
        told = [(worker.process.script.batch_size, worker.process.script.threads) for worker in served.workers]
        if any(each != (served.model.settings.batch_size, pool.threads) for each in told):
            world.broken("workers know the batch size and their threads", served=served, told=told)
        if pool.unstarted or pool._leaving:
            world.broken("nothing is left of workers that have gone", pool=pool)
        leased = [
            worker
            for worker in served.workers
            if not worker.in_flight and worker.in_flight.leased != worker.process.script.reader.kept
        ]
        if leased:
            world.broken("no memory is left to whoever has ended", workers=leased)
    if all(kind != "disk" for _, kind in world.plan.events):
        _check_disk(world)


def _check_disk(world: World) -> None:
    entries = decode_snapshot(world.disk).models if world.disk is not None else ()
    saved = sorted((entry.name, entry.version, entry.default) for entry in entries)
    now = sorted((model.name, model.version, world.registry.is_default(model)) for model in world.registry)
    if saved != now:
        world.broken("what is registered is on the disk", saved=saved, registered=now)


def check_stopped(world: World) -> None:
    """Check that nothing is left."""
    for served in world.served:
        _check_nothing_left(world, served)
        _check_counts(world, served)
    for process in world.processes:
        if process.users:
            world.broken("a template is told of the end of each worker", process=process)
        if not process.stopped:
            world.broken("no process is left", process=process)
    if any(world.placement._load.values()):
        world.broken("devices are given back", placement=world.placement)
    if world.loop.armed:
        world.broken("no timer is left", armed=world.loop.armed)
    if world.entries:
        world.broken("everybody is answered in the end", open=list(world.entries.values()))
    if world.memory.used:
        world.broken("no memory is left to whoever has ended", memory=world.memory)
    _check_all_counts(world)
    for job in world.jobs:
        if sys.getrefcount(job) > _HELD:
            world.broken("nothing holds a request that has ended", job=job, references=sys.getrefcount(job) - _HELD)
            return


def _check_nothing_left(world: World, served: Served) -> None:
    model = served.model
    if len(model.queue) or model.queue.bytes or model.dispatcher.running or model.waiting or model.running:
        world.broken("the counts return to zero", queue=model.queue, dispatcher=model.dispatcher)
    if not model.pool.empty or model.pool.idle or model.pool.granting or served.workers:
        world.broken("the pool is empty", pool=model.pool, workers=list(served.workers))
    if model.dispatcher._left or len(model.dispatcher.expiry.sent) or len(model.queue.deadlines):
        world.broken("nothing holds a request that has ended", dispatcher=model.dispatcher)
    callers = model.traffic.callers
    if callers.present or callers.strangers or callers.open:
        world.broken("no connection is counted that has closed", callers=callers)
    sequences = sequences_of(model)
    if sequences is not None and (
        len(sequences) or sequences._of or any(sequences._owned.values()) or sequences._homes
    ):
        world.broken("no sequence is left to workers that have gone", sequences=sequences, of=sequences._of)
    if model.listeners:
        world.broken("nobody waits for a version that has gone", listeners=len(model.listeners))


def _check_counts(world: World, served: Served) -> None:
    metrics, counts = served.model.metrics, served.counts
    said = {"answers": sum(metrics.fine.counts), "jobs": int(metrics.batch_size.sum)}
    # A version and its replacement share metrics while the old one finishes.
    together = [each for each in world.served if each.model.metrics.ok is metrics.ok]
    expected = {name: sum(each.counts[name] for each in together) for name in said}
    if said != expected:
        world.broken("the metrics say what was", served=served, said=said, expected=expected)
    expired = served.model.dispatcher.expired
    if (expired["queue"], expired["worker"]) != (counts["expired in the queue"], counts["expired with a worker"]):
        world.broken("the metrics say what was", served=served, expired=expired, counts=counts)


def _check_all_counts(world: World) -> None:
    """Check each version's counts over all its registrations."""
    for metrics in world.metrics.counted:
        same = [served for served in world.served if served.key == (metrics.name, metrics.version)]
        said = _counted(metrics)
        expected = {name: sum(served.counts[name] for served in same) for name in said}
        if said != expected:
            world.broken("a version counts on where it was registered before", said=said, expected=expected)


def _counted(metrics: VersionMetrics) -> dict[str, int]:
    """Return the counts in a version's metrics, of this registration and those before."""
    return {
        "requests": metrics.named.requests + metrics.unnamed.requests,
        "batches": metrics.batches.total(),
        "refused as suspects": metrics.refusals["quarantined"],
        "expired in the queue": metrics.expirations["queue"],
        "expired with a worker": metrics.expirations["worker"],
    }
