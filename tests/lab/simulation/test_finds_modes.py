"""The simulation finds errors of rows that run on their own, and of sequences; planted as in test_finds.py."""

from typing import Any

import pytest

from tests.lab.harness.planted import Around, Plant, nothing, row, rows
from tests.lab.simulation.run import run
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.core.job import Batch, Job, Reply
from tsctl.daemon.extensions.sequences import dispatcher as sequence_dispatcher
from tsctl.daemon.extensions.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.extensions.sequences.table import OpenSequence, Sequences
from tsctl.daemon.models.request_path import PoolFollower
from tsctl.daemon.workers.engine import Worker
from tsctl.daemon.workers.frames import RowFlow
from tsctl.daemon.workers.inflight import InFlight
from tsctl.daemon.workers.processes.process import WorkerProcess
from tsctl.daemon.workers.rows.in_flight import RowsInFlight
from tsctl.daemon.workers.rows.pool import RowPool
from tsctl.daemon.workers.rows.state import RowEvent, RowState
from tsctl.daemon.workers.rows.worker import RowWorker
from tsctl.handlers import wire

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error"),
]
SEEDS = range(100_901, 101_901)  # the most; most are found among the first hundred


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


def swaps_pieces(patch: pytest.MonkeyPatch) -> None:
    held: dict[tuple[int, int], wire.Chunk] = {}

    def streamed(worker: RowWorker, chunk: wire.Chunk) -> None:
        key = id(worker), chunk.batch
        if key not in held:
            held[key] = chunk
        else:
            once(worker, chunk)
            once(worker, held.pop(key))

    once = RowWorker._streamed
    patch.setattr(RowWorker, "_streamed", streamed)


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


def swaps_rows_on_their_way(patch: pytest.MonkeyPatch) -> None:
    held: dict[RowWorker, bytearray] = {}

    def predict(worker: RowWorker, batch: Batch) -> None:
        once(worker, batch)
        frame = worker._frames.pop()
        if worker not in held:
            held[worker] = frame
        else:
            worker._frames += [frame, held.pop(worker)]

    once = RowWorker.predict
    patch.setattr(RowWorker, "predict", predict)


# fmt: off
ERRORS = [
    row("cancels nothing", "a row that nobody waits for is cancelled", RowWorker, cancel=nothing),
    row("cancels twice", "a row is cancelled once", RowWorker, cancel=Around(cancelled_twice)),
    row("counts no cancelled rows", "a worker has no more rows than places", RowsInFlight,
        __len__=lambda rows: sum(state is RowState.RUNNING for state in rows._states.values())),
    row("mixes up rows", "a piece goes to whoever asked", RowWorker, _received=Around(mixed_up)),
    row("loses pieces", "an answer comes after all of its pieces", RowWorker,
        _streamed=Around(lambda once, worker, chunk: chunk.batch % 7 and once(worker, chunk))),
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
    row("takes any request", "a request is refused where its sequence cannot take it", Sequences, check=nothing),
    row("never forgets a sequence of workers", "no sequence is left to workers that have gone", Sequences,
        _close=nothing),
    row("tells no new id", "a client is told the id of a new sequence", sequence_dispatcher,
        _with_new_id=lambda reply, mark, names: reply),
    *rows(
        (streams_what_nobody_waits_for, "no piece comes after the end"),
        (swaps_pieces, "pieces come to whoever asked, in their order"),
        (swaps_rows_on_their_way, "a handler sees the requests of a sequence in their order"),
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
