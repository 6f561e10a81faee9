"""How the ranks run the same calls of the handler in the same order.

    rank 0     Predict from the daemon ──▶ forward ──▶ run ──▶ Done to the daemon ──▶ wait for the others
    the others Predict from rank 0     ──────────────▶ run ──▶ Done to rank 0, without answers

With continuous batching, which rows take part in a call depends on when they come; so rank 0 forwards a `NextCall`
before each call, which names the rows that have left. Pieces come from rank 0 alone, as in TorchServe.
"""

from collections.abc import Sequence

from tsctl.handlers import wire
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.process.continuous import Active, Continuous
from tsctl.handlers.process.ranks.leader import Leader
from tsctl.handlers.process.row_window import LEFT
from tsctl.handlers.process.schedule import Conversation, InTurn
from tsctl.handlers.runtime.runtime import Runtime, SendPieces, no_pieces
from tsctl.handlers.runtime.steps import Stepped, SteppedRuntime
from tsctl.handlers.sdk.errors import HandlerError


class LeadingInTurn(InTurn):
    """Runs batches at rank 0."""

    def __init__(self, runtime: Runtime, connection: DaemonConnection, leader: Leader) -> None:
        super().__init__(runtime, connection)
        self._leader = leader
        self._number = 0  # of the batch
        self._run = self._run_together

    def run(self, batch: wire.Predict) -> None:
        self._number = batch.batch
        self._leader.begin_round(batch.batch)
        self._leader.forward(batch)
        super().run(batch)
        self._leader.end(batch.batch, failed=bool(self._runtime.failures))

    def _run_together(self, rows: Sequence[wire.Row], send: SendPieces) -> list[wire.Answer]:
        answers = self._runtime.run(rows, send)
        if self._runtime.failures:  # a rank that has died makes the handler raise here: then nothing is answered
            self._leader.end(self._number, failed=True)
        return answers

    def obey(self, message: wire.ToWorker) -> None:
        if isinstance(message, wire.Threads | wire.BatchSize):
            self._leader.forward(message)
        super().obey(message)

    def close(self) -> None:
        self._leader.close()


class FollowingInTurn(InTurn):
    """Runs batches at another rank, for their side of what the ranks exchange."""

    def run(self, batch: wire.Predict) -> None:
        self._runtime.run(batch.rows)
        self._runtime.measured()  # rank 0 reports its own
        self._runtime.kept(batch)
        self._connection.send(wire.Done(batch.batch, [], 0.0, failures=self._runtime.failures))


class LeadingContinuous(Continuous):
    """Runs rows continuously at rank 0."""

    def __init__(self, runtime: SteppedRuntime, connection: DaemonConnection, leader: Leader) -> None:
        super().__init__(runtime, connection)
        self._leader = leader
        self._left: list[int] = []  # rows that left before the next call
        self._number = 0

    def converse(self) -> None:
        super().converse()
        self._leader.close()

    def _hear(self, message: wire.ToWorker) -> None:
        if isinstance(message, wire.Predict | wire.Threads | wire.BatchSize):
            self._leader.forward(message)
        super()._hear(message)

    def _drop_left(self) -> None:
        before = list(self._active)
        super()._drop_left()
        self._left += [number for number in before if number not in self._active]

    def _step(self) -> None:
        self._number += 1
        self._leader.begin_round(self._number)
        self._leader.forward(wire.NextCall(self._number, self._left))
        self._left = []
        super()._step()
        self._leader.end(self._number, failed=bool(self._runtime.failures))

    def _send(self, rows: Sequence[Active], stepped: Sequence[Stepped]) -> None:
        if self._runtime.failures:
            self._leader.end(self._number, failed=True)
        super()._send(rows, stepped)


class FollowingContinuous(Continuous):
    """Runs rows continuously at another rank: in the calls that rank 0 makes."""

    def converse(self) -> None:
        while (message := self._connection.receive()) is not None:
            if isinstance(message, wire.NextCall):
                self._follow(message)
            else:
                self._hear(message)

    def _follow(self, step: wire.NextCall) -> None:
        for number in step.left:
            row = self._active[number]
            if not row.fresh:
                self._cancelled.append(row.row.id)
            self._end(number, LEFT)
        self._step()
        self._connection.send(wire.Done(step.number, [], 0.0, failures=self._runtime.failures))

    def _step(self) -> None:
        batch = self._next_batch()
        cancelled, self._cancelled = self._cancelled, []
        stepped = self._runtime.step(batch, cancelled, no_pieces)
        self._runtime.measured()  # rank 0 reports its own
        for row, outcome in zip(batch.active, stepped, strict=True):
            if not isinstance(outcome, bytes) and outcome[1]:
                self._end(row.number, outcome[0])


def together(mode: wire.Mode, runtime: Runtime, connection: DaemonConnection, leader: Leader | None) -> Conversation:
    """Return the way to run this model at a rank, as `schedule.alone`; the leader is None at another rank than 0.

    Raises:
        HandlerError: `pipeline: true` of its `model-config.yaml` is not possible.
    """
    if runtime.config.get("pipeline"):
        raise HandlerError("model-config.yaml: `pipeline: true` is not possible with `parallelType`: ranks keep step")
    if mode == "batch":
        return FollowingInTurn(runtime, connection) if leader is None else LeadingInTurn(runtime, connection, leader)
    assert isinstance(runtime, SteppedRuntime)
    if leader is None:
        return FollowingContinuous(runtime, connection)
    return LeadingContinuous(runtime, connection, leader)
