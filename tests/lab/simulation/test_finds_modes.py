"""The simulation finds errors of rows that run on their own, and of sequences; planted as in test_finds.py."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from daemon.api.management.status import is_compiled
from daemon.batching.dispatcher import Dispatcher
from daemon.batching.sequences import dispatcher as sequence_dispatcher
from daemon.batching.sequences.dispatcher import SequenceDispatcher
from daemon.batching.sequences.marks import SequenceHeaders, SequenceMark, read_mark
from daemon.batching.sequences.table import OpenSequence, Sequences
from daemon.core.job import Batch, Job, JobPhase, Outcome, Reply
from daemon.models.version import ModelVersion
from daemon.workers.engine import Worker, WorkerSpec
from daemon.workers.flows import RowFlow
from daemon.workers.inflight import InFlight
from daemon.workers.processes.process import WorkerProcess
from daemon.workers.rows.in_flight import RowsInFlight
from daemon.workers.rows.pool import RowPool
from daemon.workers.rows.state import RowEvent, RowState
from daemon.workers.rows.worker import RowWorker
from handlers import wire
from tests.lab.simulation.run import prepare, run
from tests.lab.simulation.test_finds import Plant, nothing

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error"),
]
SEEDS = range(100_901, 101_901)  # the most; most are found among the first hundred


# Rows.


def cancels_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowWorker, "cancel", nothing)


def cancels_twice(patch: pytest.MonkeyPatch) -> None:
    def cancel(worker: RowWorker, job: Job) -> None:
        number = worker._rows.number_of(job)
        once(worker, job)
        if number is not None and worker._transport is not None and not worker._transport.is_closing():
            worker._transport.write(wire.encode(wire.Cancel(number)))

    once = RowWorker.cancel
    patch.setattr(RowWorker, "cancel", cancel)


def counts_no_cancelled_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        RowsInFlight, "__len__", lambda rows: sum(state is RowState.RUNNING for state in rows._states.values())
    )


def forgets_places(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowPool, "_offer", nothing)


def keeps_the_places_of_another_batch_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        WorkerSpec, "limited", lambda spec, size, timeout: replace(spec, batch_size=size, response_timeout=timeout)
    )


def streams_what_nobody_waits_for(patch: pytest.MonkeyPatch) -> None:
    def streamed(dispatcher: Dispatcher, worker: Worker, job: Job, piece: Reply) -> None:
        if job._stream is not None:
            job._stream(piece)

    patch.setattr(RowsInFlight, "find", lambda rows, number: rows._batches.get(number))
    patch.setattr(RowWorker, "_batch_heard", nothing)
    patch.setattr(Dispatcher, "streamed", streamed)


def mixes_up_rows(patch: pytest.MonkeyPatch) -> None:
    def received(worker: RowWorker, message: wire.ToDaemon) -> None:
        if isinstance(message, wire.Round) and len(message.pieces) > 1:
            numbers, pieces = zip(*message.pieces, strict=True)
            message.pieces = list(zip(numbers, reversed(pieces), strict=True))
        if isinstance(message, wire.Round):
            message.more.reverse()
        once(worker, message)

    once = RowWorker._received
    patch.setattr(RowWorker, "_received", received)


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


def loses_pieces(patch: pytest.MonkeyPatch) -> None:
    def streamed(worker: RowWorker, chunk: wire.Chunk) -> None:
        if chunk.batch % 7:
            once(worker, chunk)

    once = RowWorker._streamed
    patch.setattr(RowWorker, "_streamed", streamed)


def waits_for_ever_for_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowWorker, "_watch", nothing)


def takes_pieces_for_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowWorker, "_batch_heard", nothing)


def kills_a_worker_for_one_silent_row(patch: pytest.MonkeyPatch) -> None:
    def hangs_at(worker: RowWorker) -> float:
        return min(worker._heard.values(), default=worker._last) + worker._spec.response_timeout

    patch.setattr(RowWorker, "_hangs_at", hangs_at)


def frees_memory_with_a_cancel(patch: pytest.MonkeyPatch) -> None:
    def cancel(rows: RowsInFlight, number: int, event: RowEvent = RowEvent.CANCEL) -> None:
        once(rows, number, event)
        rows._leases.pop(number, None)

    once = RowsInFlight.cancel
    patch.setattr(RowsInFlight, "cancel", cancel)


def frees_what_a_handler_keeps(patch: pytest.MonkeyPatch) -> None:
    once = RowsInFlight.finish_row
    patch.setattr(RowsInFlight, "finish_row", lambda rows, number, kept=(): once(rows, number))


def keeps_memory_of_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlight, "_end_leases", nothing)


def keeps_rows_of_a_lost_worker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowsInFlight, "give_back", InFlight.give_back)


def blames_a_row_for_others(patch: pytest.MonkeyPatch) -> None:
    def give_back(rows: RowsInFlight, *arguments: Any) -> Any:
        while rows._batches:
            number, batch = rows._batches.popitem()
            others, rows._batches = rows._batches, {number: batch}
            yield from once(rows, *arguments)
            rows._batches = others

    once = RowsInFlight.give_back
    patch.setattr(RowsInFlight, "give_back", give_back)


def does_not_run_rows_again(patch: pytest.MonkeyPatch) -> None:
    once = RowsInFlight.expire_all
    patch.setattr(RowsInFlight, "expire_all", lambda rows, retry, reply: once(rows, False, reply))


def is_not_woken_by_a_free_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModelVersion, "worker_idle", nothing)


def lets_a_suspect_join_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowPool, "lone", property(lambda pool: bool(pool._idle)))


def does_not_reserve_a_worker(patch: pytest.MonkeyPatch) -> None:
    once = RowPool.take_idle
    patch.setattr(RowPool, "take_idle", lambda pool, alone=False: once(pool))


def lets_a_worker_with_rows_leave(patch: pytest.MonkeyPatch) -> None:
    def drain(worker: RowWorker, grace: float) -> None:
        once(worker, grace)
        worker._leave()

    once = RowWorker.drain
    patch.setattr(RowWorker, "drain", drain)


def refuses_pieces_of_who_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowFlow, "passed", lambda flow, cost: flow.refuse())


def cuts_who_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowFlow, "drained", nothing)


def does_not_hear_of_a_killed_rank(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorkerProcess, "rank_lost", nothing)


# Sequences.


def runs_two_of_a_sequence(patch: pytest.MonkeyPatch) -> None:
    def make(sequences: Sequences[Any], name: str, headers: SequenceHeaders, *, overlapping: bool = False) -> None:
        once(sequences, name, headers, overlapping=True)

    once = Sequences.__init__
    patch.setattr(Sequences, "__init__", make)


def does_not_wait_for_the_one_before(patch: pytest.MonkeyPatch) -> None:
    def review(sequences: Sequences[Any], sequence: OpenSequence[Any]) -> None:
        running, sequence.running = sequence.running, 0
        once(sequences, sequence)
        sequence.running = running

    once = Sequences._review
    patch.setattr(Sequences, "_give", nothing)
    patch.setattr(Sequences, "_review", review)


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


def takes_a_request_for_another_sequences(patch: pytest.MonkeyPatch) -> None:
    once = read_mark
    patch.setattr(sequence_dispatcher, "read_mark", lambda headers, names: once(headers, names)._replace(id="the same"))


def breaks_the_sequences_of_others(patch: pytest.MonkeyPatch) -> None:
    def gone(sequences: Sequences[Any], worker: Any, why: str, now: float) -> Any:
        for each in sequences._open.values():
            if each.worker is not None and each.waiting and not each.running:
                each.worker = worker
        return once(sequences, worker, why, now)

    once = Sequences.gone
    patch.setattr(Sequences, "gone", gone)


def forgets_the_worker_of_a_sequence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "_give", nothing)


def takes_the_last_of_a_sequence_first(patch: pytest.MonkeyPatch) -> None:
    def take(sequences: Sequences[Any], sequence: OpenSequence[Any]) -> Job:
        first, last = next(iter(sequence.waiting)), next(reversed(sequence.waiting))
        sequence.waiting.move_to_end(last, last=False)
        if first is not last:
            sequence.waiting.move_to_end(first)
        return once(sequences, sequence)

    once = Sequences._take
    patch.setattr(Sequences, "_take", take)


def keeps_sequences_of_a_worker_that_has_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequenceDispatcher, "worker_gone", nothing)


def runs_a_request_of_a_sequence_again(patch: pytest.MonkeyPatch) -> None:
    def ended(
        dispatcher: SequenceDispatcher, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float
    ) -> None:
        for outcome in outcomes:
            dispatcher.sequences.done(outcome.job, 0.0)
        once(dispatcher, worker, batch, outcomes, seconds)
        for outcome in outcomes:
            if isinstance(outcome.job.sequence, SequenceMark) and outcome.job.phase is JobPhase.QUEUED:
                dispatcher.sequences._open.pop(outcome.job.sequence.id, None)  # at another worker
                dispatcher.sequences.add(outcome.job, outcome.job.sequence.id, 0.0)

    once = Dispatcher.ended
    patch.setattr(SequenceDispatcher, "ended", ended)


def takes_any_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "check", nothing)


def never_forgets_a_sequence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "_close", nothing)


def tells_no_new_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequence_dispatcher, "_with_new_id", lambda reply, mark, names: reply)


def does_not_see_the_end_of_a_sequence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sequences, "end", nothing)


def holds_sequences_back(patch: pytest.MonkeyPatch) -> None:
    once = Sequences.plan
    patch.setattr(Sequences, "plan", lambda sequences, rooms: once(sequences, dict(list(rooms.items())[:1])))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "sentence"),
    [
        (cancels_nothing, "a row that nobody waits for is cancelled"),
        (cancels_twice, "a row is cancelled once"),
        (counts_no_cancelled_rows, "a worker has no more rows than places"),
        (forgets_places, "the pool knows who is idle"),
        (keeps_the_places_of_another_batch_size, "a worker has no more rows than places"),
        (streams_what_nobody_waits_for, "no piece comes after the end"),
        (mixes_up_rows, "a piece goes to whoever asked"),
        (swaps_pieces, "pieces come to whoever asked, in their order"),
        (loses_pieces, "an answer comes after all of its pieces"),
        (waits_for_ever_for_rows, "nobody waits for a row of which nothing is heard"),
        (takes_pieces_for_silence, "a row is given up when nothing is heard of it"),
        (kills_a_worker_for_one_silent_row, "a worker is replaced when nothing is heard of it"),
        (frees_memory_with_a_cancel, "a worker reads what its request was sent with"),
        (frees_what_a_handler_keeps, "a worker reads what its request was sent with"),
        (keeps_memory_of_rows, "no memory is left to whoever has ended"),
        (keeps_rows_of_a_lost_worker, "nothing holds a request that has ended"),
        (blames_a_row_for_others, "a request is to blame only for what it did alone"),
        (does_not_run_rows_again, "a request is tried again if its worker went away"),
        (is_not_woken_by_a_free_place, "no request waits beside a free place"),
        (lets_a_suspect_join_others, "what may end its worker travels alone"),
        (does_not_reserve_a_worker, "the pool knows who is idle"),
        (lets_a_worker_with_rows_leave, "a worker with rows is not asked to leave"),
        (refuses_pieces_of_who_reads, "only who does not read is told that the rest is dropped"),
        (cuts_who_reads, "only who does not read is cut"),
        (does_not_hear_of_a_killed_rank, "who ends of itself makes suspects"),
        (runs_two_of_a_sequence, "a batch has one request of a sequence"),
        (does_not_wait_for_the_one_before, "one request of a sequence runs at a time"),
        (swaps_rows_on_their_way, "a handler sees the requests of a sequence in their order"),
        (takes_a_request_for_another_sequences, "a request belongs to the sequence that it names"),
        (breaks_the_sequences_of_others, "a sequence is broken by the end of its worker only"),
        (forgets_the_worker_of_a_sequence, "a sequence stays with its worker"),
        (takes_the_last_of_a_sequence_first, "the requests of a sequence are sent in their order"),
        (keeps_sequences_of_a_worker_that_has_gone, "a worker's end ends its sequences"),
        (runs_a_request_of_a_sequence_again, "a request is tried twice at most"),
        (takes_any_request, "a request is refused where its sequence cannot take it"),
        (never_forgets_a_sequence, "a request is refused where its sequence cannot take it"),
        (never_forgets_a_sequence, "no sequence is left to workers that have gone"),
        (tells_no_new_id, "a client is told the id of a new sequence"),
        (does_not_see_the_end_of_a_sequence, "a request is refused where its sequence cannot take it"),
        (holds_sequences_back, "no request waits beside a free place"),
    ],
)
def test_some_seed_finds_an_error_that_was_planted(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    plant(monkeypatch)

    found = (failure.invariant for seed in SEEDS if (failure := run(seed)) is not None)

    assert any(sentence in invariant for invariant in found)
