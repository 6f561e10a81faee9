"""The simulation finds errors: each is planted into the daemon, and some seed tells of it by the right sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.harness.planted import Around, Plant, nothing, row, row_by
from tests.lab.simulation.__main__ import run
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.batching.dispatcher import Alarm, Dispatcher
from tsctl.daemon.batching.policies.table import Fixed
from tsctl.daemon.batching.queue import Expired, Expiry, JobDeadlines, Queue
from tsctl.daemon.batching.traffic.callers import Callers
from tsctl.daemon.core import job as jobs
from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.core.fingerprint import fingerprint
from tsctl.daemon.core.job import Batch, Fate, Job, JobPhase, Outcome, Reply
from tsctl.daemon.extensions.quarantine import quarantine
from tsctl.daemon.extensions.quarantine.dispatcher import Screening
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine
from tsctl.daemon.extensions.sequences import dispatcher as sequence_dispatcher
from tsctl.daemon.extensions.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.extensions.sequences.table import OpenSequence, Sequences
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.request_path import PoolFollower
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers import local, pool, slot
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import Exit, Worker
from tsctl.daemon.workers.frames import Flows, RowFlow
from tsctl.daemon.workers.inflight import InFlight
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.pool import Pool
from tsctl.daemon.workers.processes.process import WorkerProcess
from tsctl.daemon.workers.rows.in_flight import RowsInFlight
from tsctl.daemon.workers.rows.pool import RowPool
from tsctl.daemon.workers.rows.state import RowEvent, RowState
from tsctl.daemon.workers.rows.worker import RowWorker
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers import wire

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error"),
]


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


def kept(once: Any, dispatcher: Dispatcher, worker: Worker, batch: Batch, *how: Any) -> None:
    once(dispatcher, worker, batch, *how)
    batch.jobs[0].client = batch.jobs[0]  # type: ignore[assignment]  # it holds itself


def credit_for_what_nobody_has_read(once: Any, flow: RowFlow, cost: int) -> None:
    once(flow, cost)
    flow.drained()


async def not_saved(ledger: Ledger) -> None:
    """The disk can wait."""


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


def sent_ahead_first(once: Any, dispatcher: Dispatcher, now: float) -> None:
    queue, workers = dispatcher._queue, dispatcher._workers
    while len(queue) and workers.granting and (size := dispatcher._size_ahead(now)):
        dispatcher._send(workers.take_granting(), dispatcher._taken(queue.take_batch(size, now)), "ahead", now)
    once(dispatcher, now)


def spoken_after_the_end(once: Any, worker: LocalWorker, how: Exit) -> None:
    once(worker, how)
    worker._events.flow_changed(worker)


def loaded_twice(once: Any, worker: LocalWorker, message: wire.ToDaemon) -> None:
    once(worker, message)
    if isinstance(message, wire.Loaded) and worker.state is WorkerState.READY:
        worker._events.loaded(worker)


def told_nothing(once: Any, job: Job, *answer: Any) -> None:
    job._deliver = nothing
    once(job, *answer)


def counted_again(once: Any, dispatcher: Dispatcher, *ended: Any) -> None:
    dispatcher.running += 1
    once(dispatcher, *ended)


def refused_with_each_batch(once: Any, dispatcher: Dispatcher, *ended: Any) -> None:
    once(dispatcher, *ended)
    dispatcher.refuse_all(Stopping("It is late."))


def those_that_left_remembered(once: Any, dispatcher: Dispatcher, outcome: Outcome, now: float) -> int:
    status: int = once(dispatcher, outcome, now)
    if outcome.job.phase is JobPhase.ENDED:
        dispatcher._left.add(outcome.job)
    return status


def kept_as_leaving(once: Any, pool: Pool, worker: Worker, how: Exit) -> None:
    leaving = worker in pool._leaving
    once(pool, worker, how)
    if leaving:
        pool._leaving[worker] = None


def expired_in_the_queue_alone(once: Any, expiry: Expiry, now: float, busy: bool) -> Iterator[Expired]:
    for each in once(expiry, now, busy):
        if each.where != "queue":
            return
        yield each


# Rows that run on their own.


def cancelled_twice(once: Any, worker: RowWorker, job: Job) -> None:
    number = worker._rows.number_of(job)
    once(worker, job)
    if number is not None and worker._transport is not None and not worker._transport.is_closing():
        worker._transport.write(wire.encode(wire.Cancel(number)))


def mixed_up(once: Any, worker: RowWorker, message: wire.ToDaemon) -> None:
    if isinstance(message, wire.Round) and len(message.pieces) > 1:
        numbers, pieces = zip(*message.pieces, strict=True)
        message.pieces = list(zip(numbers, reversed(pieces), strict=True))
    if isinstance(message, wire.Round):
        message.more.reverse()
    once(worker, message)


def said_twice(once: Any, worker: RowWorker, chunk: wire.Chunk) -> None:
    once(worker, chunk)
    once(worker, chunk)


def last_row_first(once: Any, worker: RowWorker) -> None:
    worker._frames.reverse()
    once(worker)


def freed_with_a_cancel(once: Any, rows: RowsInFlight, number: int, event: RowEvent = RowEvent.CANCEL) -> None:
    once(rows, number, event)
    rows._leases.pop(number, None)


def blamed_for_others(once: Any, rows: RowsInFlight, *arguments: Any) -> Any:
    while rows._batches:
        number, batch = rows._batches.popitem()
        others, rows._batches = rows._batches, {number: batch}
        yield from once(rows, *arguments)
        rows._batches = others


def left_with_rows(once: Any, worker: RowWorker, grace: float) -> None:
    once(worker, grace)
    worker._leave()


def streams_what_nobody_waits_for(patch: pytest.MonkeyPatch) -> None:
    def streamed(dispatcher: Dispatcher, worker: Worker, job: Job, piece: Reply) -> None:
        if job._stream is not None:
            job._stream(piece)

    patch.setattr(RowsInFlight, "find", lambda rows, number: rows._batches.get(number))
    patch.setattr(RowWorker, "_batch_heard", nothing)
    patch.setattr(Dispatcher, "streamed", streamed)


# Sequences.


def reviewed_as_if_none_ran(once: Any, sequences: Sequences[Any], sequence: OpenSequence[Any]) -> None:
    running, sequence.running = sequence.running, 0
    once(sequences, sequence)
    sequence.running = running


def broken_by_others(once: Any, sequences: Sequences[Any], worker: Any, why: str, now: float) -> Any:
    for each in sequences._open.values():
        if each.worker is not None and each.waiting and not each.running:
            each.worker = worker
    return once(sequences, worker, why, now)


def last_taken_first(once: Any, sequences: Sequences[Any], sequence: OpenSequence[Any]) -> Any:
    first, last = next(iter(sequence.waiting)), next(reversed(sequence.waiting))
    sequence.waiting.move_to_end(last, last=False)
    if first is not last:
        sequence.waiting.move_to_end(first)
    return once(sequences, sequence)


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
    row("wakes nobody", "who backs off is woken", pool,
        plan=Around(lambda once, *facts: replace(once(*facts), wake_at=None))),
    row("keeps what has ended", "nothing holds a request that has ended", Dispatcher, ended=Around(kept)),
    row("forgets those that are compared", "healthy requests are answered", Screening, compared=nothing),
    row_by(takes_a_late_answer_for_the_next, "an answer goes to whoever asked"),
    row("refuses one too early", "only a full queue refuses", Queue,
        _check=Around(lambda once, queue, job, ahead: once(queue, job, ahead + 1))),
    row("has no limits", "a full queue takes nothing more", Queue, _check=nothing),
    row("sends parts of batches ahead", "only whole batches go ahead, to busy workers", Dispatcher, _size_ahead=Around(
        lambda once, dispatcher, now: once(dispatcher, now) or int(not dispatcher._queue.head.runs_alone))),
    row("takes a busy worker for idle", "a batch that does not go ahead goes to an idle worker", Pool,
        _offer=lambda places, worker: places._idle.__setitem__(worker, None)),
    row("sends ahead before all else", "nothing goes ahead while somebody is idle", Dispatcher,
        _match=Around(sent_ahead_first)),
    row("sends ahead behind what runs alone", "nothing goes ahead behind what may end its worker", Pool,
        take_idle=Around(lambda once, places, alone=False: once(places))),
    row("leaves those in the queue that have ended", "no exception escapes", Dispatcher, _take_out=nothing),
    row("expires nothing", "what has no time left is not sent", Dispatcher, _expire=nothing),
    row("expires nothing at workers", "an answer is not later than the deadline", Expiry,
        due=Around(expired_in_the_queue_alone)),
    row("expires too early", "nobody is told for nothing that there is no time", Expiry,
        due=Around(lambda once, expiry, now, busy: once(expiry, now + 0.5, busy))),
    row("expires what has no limit", "only what has a limit expires", Expiry, _overdue=lambda expiry, now: next(
        (job for job in expiry._oldest() if job.queued + 1.0 <= now), None)),
    row("does not let the patient go first", "whoever has let others go before for long enough goes first", Queue,
        age=nothing),
    row("puts back before older ones", "each lane is in the order of arrival", Queue,
        put_back=lambda queue, job: queue._add(job, first=True)),
    row("watches what has ended", "deadlines are watched where there are any", JobDeadlines, discard=nothing),
    row("counts them again", "the dispatcher counts those with a worker", Dispatcher, ended=Around(counted_again)),
    row("remembers those that left", "those that have left are forgotten when they end", Dispatcher,
        _end=Around(those_that_left_remembered)),
    row("tells them nothing", "whoever has ended was told, or has left", Job, answer=Around(told_nothing)),
    row("answers nothing", "a version with workers answers", Job, answer=Around(told_nothing)),
    row("counts those that were taken", "who is there is counted", Callers, taken=nothing),
    row("counts who has gone as a regular", "who is there has a connection that is counted", Callers,
        left=lambda callers, caller: callers._known.pop(caller)),
    row("knows who has gone", "no connection is counted that has closed", Callers,
        left=lambda callers, caller: callers._known[caller]),
    row("refuses all that wait", "a request that waits is refused only where nobody will come for it", Dispatcher,
        ended=Around(refused_with_each_batch)),
    row("does not tell of its pool", "a command ends", PoolFollower, pool_changed=nothing),
    row("tells no listener", "nobody waits for a version that has gone", ModelVersion, changed=nothing),
    row("counts a replacement anew", "a version counts on where it was registered before", VersionMetrics,
        take_over=nothing),
    row("hears of what has ended", "a worker says nothing after its exit", LocalWorker,
        _exited=Around(spoken_after_the_end)),
    row("hears twice of a load", "a worker loads once", LocalWorker, _received=Around(loaded_twice)),
    row("mixes up outcomes", "there is an outcome for each job", local,
        outcomes_of=Around(lambda once, *batch: once(*batch)[::-1])),
    row("forgets batches of workers that end", "a worker gives back what it has before it ends", InFlight,
        give_back=lambda *how: iter(())),
    row("does not know what runs", "it is known whether a worker ended with work", InFlight,
        busy=property(lambda in_flight: False)),
    row("does not notice an exit", "a slot knows its worker's state", pool, after_exit=lambda *how, **facts: False),
    row("adds no place", "there are as many places as are wanted", pool,
        plan=Around(lambda once, *facts: replace(once(*facts), add=0))),
    row("waits for ever for a load", "there are as many workers as are wanted", LocalWorker, _startup_timeout=nothing),
    row("tells no threads", "workers know the batch size and their threads", LocalWorker, set_threads=nothing),
    row("keeps workers that have left", "nothing is left of workers that have gone", Pool,
        exited=Around(kept_as_leaving)),
    row("keeps workers for ever", "the pool is empty", Pool, exited=Around(kept_as_leaving)),
    row("gives no device back", "devices are given back", Placement, release=nothing),
    row("never rests", "the loop finds rest", Dispatcher,
        _pump=Around(lambda once, dispatcher: (once(dispatcher), dispatcher.wake()))),
    row("cuts off what is not wanted any more", "a worker that is not wanted any more finishes what it has", Pool,
        _retire=Around(lambda once, places, slot, grace: once(places, slot, 0.0))),
]
ERRORS_OF_ROWS = [
    row("cancels nothing", "a row that nobody waits for is cancelled", RowWorker, cancel=nothing),
    row("cancels twice", "a row is cancelled once", RowWorker, cancel=Around(cancelled_twice)),
    row("counts no cancelled rows", "a worker has no more rows than places", RowsInFlight,
        __len__=lambda rows: sum(state is RowState.RUNNING for state in rows._states.values())),
    row("mixes up rows", "a piece goes to whoever asked", RowWorker, _received=Around(mixed_up)),
    row("loses pieces", "an answer comes after all of its pieces", RowWorker,
        _streamed=Around(lambda once, worker, chunk: chunk.batch % 7 and once(worker, chunk))),
    row("says pieces twice", "pieces come to whoever asked, in their order", RowWorker, _streamed=Around(said_twice)),
    row("waits for ever for rows", "nobody waits for a row of which nothing is heard", RowWorker, _watch=nothing),
    row("takes pieces for silence", "a row is given up when nothing is heard of it", RowWorker, _batch_heard=nothing),
    row("kills a worker for one silent row", "a worker is replaced when nothing is heard of it", RowWorker,
        _hangs_at=lambda worker: min(worker._heard.values(), default=worker._last) + worker._spec.response_timeout),
    row("frees memory with a cancel", "a worker reads what its request was sent with", RowsInFlight,
        cancel=Around(freed_with_a_cancel)),
    row("frees what a handler keeps", "a worker reads what its request was sent with", RowsInFlight,
        finish_row=Around(lambda once, rows, number, kept=(): once(rows, number))),
    row("keeps memory of rows", "no memory is left to whoever has ended", InFlight, _end_leases=nothing),
    row("keeps rows of a lost worker", "nothing holds a request that has ended", RowsInFlight,
        give_back=InFlight.give_back),
    row("blames a row for others", "a request is to blame only for what it did alone", RowsInFlight,
        give_back=Around(blamed_for_others)),
    row("does not run rows again", "a request is tried again if its worker went away", RowsInFlight,
        expire_all=Around(lambda once, rows, retry, reply: once(rows, False, reply))),
    row("is not woken by a free place", "no request waits beside a free place", PoolFollower, worker_idle=nothing),
    row("lets a suspect join others", "what may end its worker travels alone", RowPool,
        lone=property(lambda pool: bool(pool._idle))),
    row("does not reserve a worker", "the pool knows who is idle", RowPool,
        take_idle=Around(lambda once, pool, alone=False: once(pool))),
    row("lets a worker with rows leave", "a worker with rows is not asked to leave", RowWorker,
        drain=Around(left_with_rows)),
    row("refuses pieces of who reads", "only who does not read is told that the rest is dropped", RowFlow,
        passed=lambda flow, cost: flow.refuse()),
    row("does not hear of a killed rank", "who ends of itself makes suspects", WorkerProcess, member_lost=nothing),
    row("runs two of a sequence", "a batch has one request of a sequence", Sequences, __init__=Around(
        lambda once, sequences, name, headers, overlapping=False: once(sequences, name, headers, overlapping=True))),
    row("does not wait for the one before", "one request of a sequence runs at a time", Sequences,
        _give=nothing, _review=Around(reviewed_as_if_none_ran)),
    row("takes a request for another sequence's", "a request belongs to the sequence that it names",
        sequence_dispatcher,
        read_mark=Around(lambda once, headers, names: once(headers, names)._replace(id="the same"))),
    row("breaks the sequences of others", "a sequence is broken by the end of its worker only", Sequences,
        gone=Around(broken_by_others)),
    row("forgets the worker of a sequence", "a sequence stays with its worker", Sequences, _give=nothing),
    row("takes the last of a sequence first", "the requests of a sequence are sent in their order", Sequences,
        _take=Around(last_taken_first)),
    row("keeps sequences of a worker that has gone", "a worker's end ends its sequences", SequenceDispatcher,
        worker_gone=nothing),
    row("sends the last row first", "a handler sees the requests of a sequence in their order", RowWorker,
        _flush=Around(last_row_first)),
    row("takes any request", "a request is refused where its sequence cannot take it", Sequences, check=nothing),
    row("never forgets a sequence of workers", "no sequence is left to workers that have gone", Sequences,
        _close=nothing),
    row("tells no new id", "a client is told the id of a new sequence", sequence_dispatcher,
        _with_new_id=lambda reply, mark, names: reply),
    row_by(streams_what_nobody_waits_for, "no piece comes after the end"),
]
# fmt: on


def tells(sentence: str, seeds: Sequence[int]) -> bool:
    return any(failure is not None and sentence in failure.invariant for failure in map(run, seeds))


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "sentence"), ERRORS)
def test_some_seed_finds_an_error_that_was_planted(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    assert tells(sentence, range(900, 1701)), "most are found among the first three hundred"


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "sentence"), ERRORS_OF_ROWS)
def test_some_seed_of_all_modes_finds_an_error_of_rows_and_sequences(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    assert tells(sentence, range(100_901, 101_901)), "most are found among the first hundred"
