"""Flow control of streamed answers: bytes on their way to the clients, and the credit for more (handlers/credit.py).

A client that reads its stream earns credit for its row, at least half a window at once: a short stream costs no
frame. A row whose client has gone gets none, and the worker is notified once.
"""

from collections.abc import Callable

from tsctl.handlers.credit import GRANT, WINDOW

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
    """The flows of one worker; empty while its batches stream nothing."""

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
