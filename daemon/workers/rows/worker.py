"""A worker process that runs row by row: rows begin, send pieces and end on their own, up to its capacity at once.

The conversation is that of local.py in batches of one row (handlers/wire.py); state.py draws a row's way. Two limits of
time replace that of a batch, both the response timeout:

    a row of which nothing is heard    its client is answered, and the worker is told to drop it; the others go on
    a worker of which nothing is heard while it has rows          it is killed, and all of its rows come back

Whatever is said of a row that nobody waits for does not count as heard.
"""

import asyncio
from collections.abc import Iterable
from itertools import chain

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import ResponseTimeout
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome, Piece, error_reply
from tsctl.daemon.workers.engine import BatchEvents, WorkerListener, WorkerSpec
from tsctl.daemon.workers.frames import outcomes_of, piece_of, predict_of, timeout_reply
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.processes.spawn import ProcessSource
from tsctl.daemon.workers.rows.in_flight import RowsInFlight
from tsctl.daemon.workers.rows.state import RowEvent
from tsctl.daemon.workers.state import WorkerEvent, WorkerState
from tsctl.handlers import wire
from tsctl.handlers.compiling import mypyc_attr
from tsctl.handlers.credit import OVERHEAD, PATIENCE

CANCELLED = "nobody waited for the answer any more"


@mypyc_attr(allow_interpreted_subclasses=True)  # those of simulations
class RowWorker(LocalWorker):
    """One worker process that runs rows on their own."""

    def __init__(
        self,
        spec: WorkerSpec,
        events: WorkerListener,
        batches: BatchEvents,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        source: ProcessSource,
        arena: Arena | None,
    ) -> None:
        super().__init__(spec, events, batches, loop, clock, source, arena)
        self.in_flight = self._rows = RowsInFlight(self._spec.rows)
        self._heard: dict[int, float] = {}  # running row → when it was last heard of; the longest silent first
        self._last = 0.0  # when anything was last heard, or the first row was sent
        self._watched = False  # the timer is set
        self._frames: list[bytearray] = []  # of this turn

    def predict(self, batch: Batch) -> None:
        assert self.state is WorkerState.READY and self._transport is not None, self
        message, leases = predict_of(batch, shared=self._shares)
        now = self._clock.now()
        if not self._rows:
            self._last = now
        self._rows.add_batch(batch, leases)
        self._heard[batch.id] = now
        self._watch(now)
        self._write(message)

    def cancel(self, job: Job) -> None:
        number = self._rows.number_of(job)
        if number is not None:
            self._cancel(number, RowEvent.CANCEL)

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        super().set_limits(batch_size, response_timeout)
        self._rows.capacity = self._spec.rows

    def _cancel(self, number: int, event: RowEvent) -> None:
        self._rows.cancel(number, event)
        del self._heard[number]
        self._flows.close(number)
        self._write(wire.Cancel(number))

    def _write(self, message: wire.ToWorker) -> None:
        """Write a message with all others of this turn: rows that come together begin with the same call.

        A frame that is written at once wakes the worker, whose call then begins without the rows behind it: 32 that
        came together had their first piece after 4.2 ms instead of 3.4 (tests/lab/benchmarks/streams).
        """
        if not self._frames:
            self._clock.soon(self._flush)
        self._frames.append(wire.encode(message))

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(frames))

    def _received(self, message: wire.ToDaemon) -> None:
        if isinstance(message, wire.Round):
            if len(message.rows) != len(message.more):
                raise wire.BrokenMessage(f"{len(message.more)} pieces of {len(message.rows)} rows")
            self._streamed_round(chain(message.pieces, zip(message.rows, message.more, strict=True)))
            for done in message.ends:
                self._done(done)
        else:
            super()._received(message)

    def _streamed_round(self, pieces: Iterable[tuple[int, wire.Answer | bytes]]) -> None:
        """Forward pieces of many rows, as `_streamed` those of one batch."""
        now = self._clock.now()
        for number, said in pieces:
            batch = self._rows.find(number)
            if batch is None:
                continue  # ended by the response timeout, or its client has left
            self._last = now
            del self._heard[number]
            self._heard[number] = now
            flow = self._flows.of(number, 0)
            flow.wanted = False
            piece = Piece(200, said, flow=flow) if isinstance(said, bytes) else piece_of(said, flow)
            flow.passed(len(piece.body) + OVERHEAD)
            if flow.used_up:
                batch.jobs[0].held_up = True
            self._batches.streamed(self, batch.jobs[0], piece)
            if not flow.wanted:
                flow.refuse()  # the client has gone

    def _time_anew(self) -> None:
        self._last = self._clock.now()
        self._heard = dict.fromkeys(self._heard, self._last)
        self._watched = False
        if self._rows:
            self._watch(self._last)

    def _batch_heard(self, batch: Batch) -> None:
        self._last = self._clock.now()
        if self._heard.pop(batch.id, None) is not None:  # else the piece made its client leave
            self._heard[batch.id] = self._last

    def _done(self, done: wire.Done) -> None:
        self._measured(done.measured)
        if self._hung:
            return  # all rows were taken back
        if done.batch not in self._rows.numbers or len(done.answers) != 1:
            raise wire.BrokenMessage(f"{len(done.answers)} answers to row {done.batch} of {self._rows!r}")
        awaited = self._rows.find(done.batch) is not None
        batch = self._rows.finish_row(done.batch, done.kept)
        self._heard.pop(done.batch, None)
        self._last = self._clock.now()
        if self._flows:
            self._flows.close(batch.id)
        self.answered = True
        if awaited:
            outcomes = outcomes_of(batch, done)
        else:
            outcomes = [Outcome(batch.jobs[0], None, Fate.CANCELLED, reason=CANCELLED)]
        if done.too_large:
            self._spec.too_large(done.too_large)
        self._batches.ended(self, batch, outcomes, done.seconds)
        if self.state is WorkerState.DRAINING and not self._rows:
            self._leave()

    # Timeouts.

    def _watch(self, now: float) -> None:
        """Set the timer for the first time at which anything may be late; when it is due, most rows were heard of."""
        if not self._watched and self._suspended is None:
            self._watched = True
            first = next(iter(self._heard.values()), self._last) + self._spec.response_timeout
            self._timer = self._clock.later(max(0.0, min(first, self._hangs_at()) - now), self._response_timeout)

    def _hangs_at(self) -> float:
        """Return when the worker counts as hanging if nothing is heard; it may wait for clients with unread pieces."""
        waits = any(self._flows.used_up(number) for number in self._heard)
        return self._last + self._spec.response_timeout + (PATIENCE if waits else 0.0)

    def _response_timeout(self) -> None:
        self._watched = False
        if not self._rows:
            return
        now, seconds = self._clock.now(), self._spec.response_timeout
        if self._hangs_at() <= now:
            self._hang(seconds)
            return
        for number, heard in list(self._heard.items()):
            if heard + seconds > now:
                break
            batch = self._rows.find(number)
            assert batch is not None
            if self._flows.used_up(number):  # the worker waits for the client, and cuts the row in its time
                del self._heard[number]
                self._heard[number] = now
            else:
                self._cancel(number, RowEvent.LATE)
                text = f"The request was not answered within the response timeout of {seconds:g} s."
                self._batches.late(self, batch.jobs[0], error_reply(ResponseTimeout(text)))
        self._watch(now)

    def _hang(self, seconds: float) -> None:
        self._hung = True
        reply = timeout_reply(seconds)
        if self.state is WorkerState.READY:
            self._advance(WorkerEvent.STOP)  # nothing more is sent to the worker
        self._process.kill(f"response timeout of {seconds:g} s", "response_timeout")
        self._heard.clear()
        self._flows.close_all()
        for batch, outcomes in self._rows.expire_all(self._retry, reply):
            self._batches.ended(self, batch, outcomes, 0.0)
