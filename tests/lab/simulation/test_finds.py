"""The simulation finds errors: each is planted into the daemon, and some seed tells of it by the right sentence."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.lab.harness.planted import Around, Plant, nothing, row, rows
from tests.lab.simulation.run import run
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.batching.dispatcher import Alarm, Dispatcher
from tsctl.daemon.batching.policies.table import Fixed
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core import job as jobs
from tsctl.daemon.core.fingerprint import fingerprint
from tsctl.daemon.core.job import Batch, Fate, Job, JobPhase, Outcome, Reply
from tsctl.daemon.extensions.quarantine import quarantine
from tsctl.daemon.extensions.quarantine.dispatcher import Screening
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.request_path import PoolFollower
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers import pool, slot
from tsctl.daemon.workers.engine import Worker
from tsctl.daemon.workers.frames import Flows, RowFlow
from tsctl.daemon.workers.inflight import InFlight
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.pool import Pool

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error"),
]
SEEDS = range(900, 1701)  # the most; most are found among the first three hundred


def charged(in_flight: InFlight, retry: bool, reason: str, fate: Fate) -> Iterator[tuple[Batch, list[Outcome]]]:
    while in_flight._batches:
        batch = in_flight._batches.popitem()[1]
        yield batch, [Outcome(job, None, fate, retry, reason) for job in batch.jobs]


def answered_twice(once: Any, job: Job, reply: Reply, *ending: Any) -> None:
    once(job, reply, *ending)
    if reply.status == 500:
        job._deliver(reply)


def held_for_too_long(once: Any, fixed: Fixed, *facts: Any) -> Any:
    fixed._max_delay = 0.7
    return once(fixed, *facts)


def bytes_forgotten(once: Any, queue: Queue, job: Job) -> None:
    size, before = queue.bytes, once(queue, job)
    queue.bytes = size
    return before  # type: ignore[no-any-return]


def ended_with_a_kill(once: Any, in_flight: InFlight, retry: bool, reply: Reply) -> Any:
    ended = once(in_flight, retry, reply)
    in_flight.end_all_leases()
    return ended


def ended_with_the_connection(once: Any, worker: LocalWorker) -> None:
    worker.in_flight.end_all_leases()
    once(worker)


def credit_for_what_nobody_has_read(once: Any, flow: RowFlow, cost: int) -> None:
    once(flow, cost)
    flow.drained()


async def not_saved(ledger: Ledger) -> None:
    """The disk can wait."""


def replaces_nobody(patch: pytest.MonkeyPatch) -> None:
    def exited(pool: Pool, worker: Any, how: Any) -> None:
        leaving.append(worker)
        once(pool, worker, how)
        leaving.clear()

    once, reconcile, leaving = Pool.exited, Pool.reconcile, list[Any]()
    patch.setattr(Pool, "exited", exited)
    patch.setattr(Pool, "reconcile", lambda pool, grace=None: leaving or reconcile(pool, grace))


def takes_a_late_answer_for_the_next(patch: pytest.MonkeyPatch) -> None:
    def expire(in_flight: InFlight, retry: bool, reply: Reply) -> tuple[Batch, list[Outcome]]:
        ended = once(in_flight, retry, reply)
        in_flight.overdue = None
        return ended

    def done(worker: LocalWorker, message: Any) -> None:
        batch = worker.in_flight.running
        once_done(worker, message if batch is None else type(message)(batch.id, message.answers, message.seconds))

    once, once_done = InFlight.expire, LocalWorker._done
    patch.setattr(InFlight, "expire", expire)
    patch.setattr(LocalWorker, "_done", done)


def keeps_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    kept: list[Job] = []

    def ended(
        dispatcher: Dispatcher, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float
    ) -> None:
        once(dispatcher, worker, batch, outcomes, seconds)
        kept.extend(batch.jobs[:1])

    once = Dispatcher.ended
    patch.setattr(Dispatcher, "ended", ended)


# fmt: off
ERRORS = [
    row("forgets what comes back", "the queue counts those that wait", Queue, put_back=nothing),
    row("puts what comes back last", "what has come back is sent first", Queue,
        put_back=lambda queue, job: queue._add(job, first=False)),
    row("charges what went ahead", "what was sent ahead and not begun", InFlight, give_back=charged),
    row("answers twice", "a request is answered once", Job, answer=Around(answered_twice)),
    row("answers those who left", "whoever has left is told nothing", Dispatcher,
        abandon=Around(lambda once, asked, job: job.phase is JobPhase.QUEUED and once(asked, job))),
    row("holds for too long", "nobody is held for more than the maximum delay", Fixed,
        decide=Around(held_for_too_long)),
    row("is not woken by an idle worker", "no idle worker stands beside a batch that is due", PoolFollower,
        worker_idle=nothing),
    row("sends one too many", "a batch has from one job to the batch size", Dispatcher,
        _take=Around(lambda once, dispatcher, count: once(dispatcher, count + 1))),
    row("takes the last first", "first in is first out", Queue,
        _add=Around(lambda once, queue, job, first: once(queue, job, first=True))),
    row("lets what killed a worker have company", "what a worker died with travels alone", Job,
        runs_alone=property(lambda job: job.exclusive)),
    row("tries three times", "a request is tried twice at most", jobs, MAX_ATTEMPTS=3),
    row("runs again what was answered in part", "what was answered in part is not run again", Job,
        may_return=property(lambda job: job.phase is JobPhase.SENT and job.attempt < 2)),
    row("runs again what may not", "a handler sees a request as often as it may", InFlight,
        give_back=Around(lambda once, in_flight, retry, *reason: once(in_flight, True, *reason))),
    row("sets no alarm", "nobody waits beyond the", Alarm, set=nothing),
    row("forgets bytes", "the queue counts those that wait", Queue, _gone=Around(bytes_forgotten)),
    row("counts no batches", "the metrics say what was", VersionMetrics, sent=nothing),
    row("never gives up", "a slot gives up", slot, RESTART_LIMIT=1000),
    row("waits for ever for a worker", "everybody is answered in the end", LocalWorker, _time_response=nothing),
    row("does not notice a lost worker", "nothing is sent to a worker that is known to end", LocalWorker,
        _disconnect=nothing),
    row("holds though it stops", "no idle worker stands beside a batch that is due", ModelVersion,
        stop=lambda model: setattr(model, "stopping", True)),
    row("leaves timers", "no timer is left of a version that has gone", ModelVersion, close=nothing),
    row("leases no memory to workers", "a worker reads what its request was sent with", InFlight,
        add_batch=Around(lambda once, in_flight, batch, leases=(): once(in_flight, batch))),
    row("ends leases with a kill", "a worker reads what its request was sent with", InFlight,
        expire=Around(ended_with_a_kill)),
    row("ends leases with the connection", "a worker reads what its request was sent with", LocalWorker,
        _disconnect=Around(ended_with_the_connection)),
    row("keeps memory of answered batches", "no memory is left to whoever has ended", InFlight,
        finish=InFlight._take_out, end_all_leases=nothing),
    row("does not remember", "what is registered is on the disk", Ledger, save=not_saved),
    row("gives credit for what nobody has read", "credit is given for what a client has read", RowFlow,
        passed=Around(credit_for_what_nobody_has_read)),
    row("gives no credit", "only who does not read is cut", RowFlow, drained=nothing),
    row("takes a wait for clients for the worker's time", "a wait for clients is not the worker's time", Flows,
        used_up=lambda flows, batch: False),
    row("gives up though there was work", "a version fails only where workers cannot load", pool,
        after_exit=lambda place, answered, now, busy=False: slot.after_exit(place, answered, now, False)),
    row("blames whom it killed", "who ends of itself makes suspects", InFlight,
        give_back=Around(lambda once, in_flight, retry, reason, fate: once(in_flight, retry, reason, Fate.CRASHED))),
    row("takes one for another", "only what has ended two workers alone is refused", quarantine,
        fingerprint=lambda params, headers: fingerprint(params, ())),
    row("is confused by ids", "what has ended two workers alone is refused for a minute", quarantine,
        fingerprint=lambda params, headers: repr(headers).encode()),
    row("refuses nobody", "what has ended two workers alone is refused for a minute", Quarantine, refusal=nothing),
    row("lets suspects have company", "what may end its worker travels alone", Job,
        runs_alone=property(lambda job: job.exclusive or job.attempt > 0)),
    row("does not look at those that wait", "what may end its worker travels alone", Screening,
        compare_waiting=nothing),
    row("sends ahead behind suspects", "the pool knows who is idle", Pool,
        take_idle=Around(lambda once, places, alone=False: once(places))),
    row("forgets those that are compared", "healthy requests are answered", Screening, compared=nothing),
    *rows(
        (replaces_nobody, "who backs off is woken"),
        (takes_a_late_answer_for_the_next, "an answer goes to whoever asked"),
        (keeps_what_has_ended, "nothing holds a request that has ended"),
    ),
]
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "sentence"), ERRORS)
def test_some_seed_finds_an_error_that_was_planted(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    found = (failure.invariant for seed in SEEDS if (failure := run(seed)) is not None)

    assert any(sentence in invariant for invariant in found)
