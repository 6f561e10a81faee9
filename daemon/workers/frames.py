"""Convert jobs to frames, and frames to replies, and grant credit for streamed ones (handlers/credit.py).

Values in the arena stay there: frames carry their places.
"""

import math
import socket
from collections.abc import Callable, Iterable
from typing import cast

from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import ResponseTimeout
from tsctl.daemon.core.job import Batch, Flow, Job, Outcome, Piece, Reply, error_reply
from tsctl.handlers import wire
from tsctl.handlers.credit import GRANT, WINDOW
from tsctl.handlers.tensor_heads import Head


def share(sock: socket.socket, arena: Arena | None) -> None:
    """Send the arena to the worker at the other end, as the first message.

    The message is sent before the worker exists, so the way the worker is made does not matter.
    """
    if arena is not None:
        socket.send_fds(sock, [wire.encode(wire.Share(arena.size))], [arena.descriptor])


def predict_of(batch: Batch, *, shared: bool = True) -> tuple[wire.Predict, list[Lease]]:
    """Return the frame, and the values in the arena that the worker will read after that.

    Args:
        shared: whether the worker can read the arena; else all values are in the frame.
    """
    stored: list[wire.Stored] = []
    leases: list[Lease] = []
    rows = []
    for number, job in enumerate(batch.jobs):
        params: list[tuple[str, str, wire.Payload]] = []
        for index, param in enumerate(job.params):
            name, kind, value = param
            if not isinstance(value, Lease):
                params.append(cast(tuple[str, str, wire.Payload], param))  # not copied
            elif not shared:
                params.append((name, kind, value.view))
            else:
                stored.append(wire.Stored(number, index, value.offset, value.length))
                leases.append(value)
                params.append((name, kind, b""))
        headers = cast(list[tuple[str, str]], job.headers)  # a tuple is encoded as a list is
        rows.append(wire.Row(job.id, headers, params, cast(Head | None, job.infer)))
    return wire.Predict(batch.id, rows, stored), leases


def reply_of(answer: wire.Answer) -> Reply:
    return Reply(answer.status, answer.body, answer.phrase, answer.headers, answer.error)


def piece_of(answer: wire.Answer, flow: Flow) -> Piece:
    return Piece(answer.status, answer.body, answer.phrase, answer.headers, answer.error, flow=flow)


def row_of(batch: Batch, row: int) -> Job:
    """Return the job of a row that a worker names.

    Raises:
        wire.BrokenMessage: the batch has no such row.
    """
    if not 0 <= row < len(batch.jobs):
        raise wire.BrokenMessage(f"row {row} of a batch of {len(batch.jobs)}")
    return batch.jobs[row]


def timeout_reply(seconds: float) -> Reply:
    """Return the answer to the jobs of a worker that exceeded the response timeout, of so many seconds."""
    return error_reply(
        ResponseTimeout(f"The worker did not answer within the response timeout of {seconds:g} s and is replaced.")
    )


def check_measured(measurements: Iterable[wire.Measurement]) -> None:
    """Check the rule that no constraint of one field expresses: only a gauge may have any value.

    Raises:
        wire.BrokenMessage: a counter is negative or not finite, or a histogram's sum is not finite.
    """
    for each in measurements:
        if each.kind != "gauge" and not (math.isfinite(each.value) and (each.value >= 0.0 or each.kind == "histogram")):
            raise wire.BrokenMessage(f"a {each.kind} of {each.value}")


def outcomes_of(batch: Batch, done: wire.Done) -> list[Outcome]:
    """Return the outcomes of a finished batch; there are as many answers as jobs."""
    if done.failures:
        return _failed_outcomes(batch, done)
    return [Outcome(job, reply_of(answer)) for job, answer in zip(batch.jobs, done.answers, strict=True)]


def _failed_outcomes(batch: Batch, done: wire.Done) -> list[Outcome]:
    """Return the outcomes of a batch with exceptions; their replies carry the tracebacks."""
    tracebacks = {row: each.traceback for each in done.failures for row in each.rows}
    outcomes = []
    for row, (job, answer) in enumerate(zip(batch.jobs, done.answers, strict=True)):
        reply = Reply(
            answer.status, answer.body, answer.phrase, answer.headers, answer.error, None, tracebacks.get(row, "")
        )
        outcomes.append(Outcome(job, reply))
    return outcomes


Grant = Callable[[int, int, int], None]  # batch, row and bytes; 0 bytes: the row's pieces are not wanted any more


class RowFlow:
    """The pieces of one row; see `tsctl.daemon.core.job.Flow`.

    Attributes:
        wanted: a client waits for the pieces.
    """

    def __init__(self, batch: int, row: int, grant: Grant) -> None:
        self.wanted = False
        self._batch = batch
        self._row = row
        self._grant: Grant | None = grant
        self._unread = 0  # bytes that were forwarded, and not written yet
        self._taken = 0  # bytes that were written, and not yet granted as credit

    def __repr__(self) -> str:
        return f"<RowFlow {self._batch}:{self._row} unread={self._unread} taken={self._taken}>"

    @property
    def used_up(self) -> bool:
        """Whether the worker may have to wait with the row's next piece."""
        return self._grant is not None and self._unread + self._taken >= WINDOW

    def passed(self, cost: int) -> None:
        """Count a forwarded piece."""
        self._unread += cost

    def drained(self) -> None:
        self._taken += self._unread
        self._unread = 0
        if self._taken >= GRANT and self._grant is not None:
            taken, self._taken = self._taken, 0
            self._grant(self._batch, self._row, taken)

    def refuse(self) -> None:
        grant, self._grant = self._grant, None
        if grant is not None:
            grant(self._batch, self._row, 0)

    def close(self) -> None:
        """Grant nothing more: the row's batch or answer has ended."""
        self._grant = None


class Flows:
    """The flows of one worker's streamed answers; empty while its batches stream nothing.

    A client that reads its stream earns credit for its row, at least half a window at once: a short stream costs no
    frame. A row whose client has gone gets none, and the worker is notified once.
    """

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self._flows: dict[int, dict[int, RowFlow]] = {}  # batch → row → its flow

    def __len__(self) -> int:
        return len(self._flows)

    def of(self, batch: int, row: int) -> RowFlow:
        rows = self._flows.get(batch)
        if rows is None:
            rows = self._flows[batch] = {}
        flow = rows.get(row)
        if flow is None:
            flow = rows[row] = RowFlow(batch, row, self._grant)
        return flow

    def used_up(self, batch: int) -> bool:
        """Return whether the worker may have to wait for a client of this batch."""
        return any(flow.used_up for flow in self._flows.get(batch, {}).values())

    def close(self, batch: int) -> None:
        """Close the flows of a batch that has ended."""
        for flow in self._flows.pop(batch, {}).values():
            flow.close()

    def close_all(self) -> None:
        for batch in list(self._flows):
            self.close(batch)
