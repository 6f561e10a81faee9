"""Limits on streaming: the bytes in flight to the client of a row are limited to a window of 1 MiB.

A row whose window is used up waits until its client has read something. A batch waits for `PATIENCE` seconds in all,
for all its rows together. Then the rows whose clients read nothing are cut: the rest of their responses is dropped. The
other rows continue with a window of 8 MiB, without waiting; a row that uses up that window is cut too.

A piece is sent while any of the window is left, whatever the piece's size. No threads and no sockets here.
"""

from collections.abc import Iterable

from tsctl.handlers import wire

WINDOW = 1024 * 1024  # bytes
LATE_WINDOW = 8 * WINDOW
GRANT = WINDOW // 2  # bytes that a client must have read before the worker is notified
PATIENCE = 2.0  # seconds
OVERHEAD = 64  # bytes that a piece costs the daemon beside its body

Pieces = list[tuple[int, wire.Answer]]


def cost_of(piece: wire.Answer) -> int:
    """Return the bytes of the window that a piece uses."""
    return len(piece.body) + OVERHEAD


class Windows:
    """The windows of one batch.

    Attributes:
        patience: seconds that the batch may still wait.
        cut: rows whose pieces are dropped.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.cut: set[int] = set()
        self._used: dict[int, int] = {}  # row → bytes in flight to its client
        self._granted: set[int] = set()  # rows whose clients read something since the last wait began

    def __repr__(self) -> str:
        return f"<Windows used={self._used} cut={sorted(self.cut)} patience={self.patience:g} s>"

    def grant(self, row: int, count: int) -> None:
        """Apply a Credit of the daemon."""
        if count <= 0:
            self.cut.add(row)
        else:
            self._used[row] = self._used.get(row, 0) - count
            self._granted.add(row)

    def split(self, pieces: Iterable[tuple[int, wire.Answer]]) -> tuple[Pieces, Pieces]:
        """Return the pieces to send now, charged to their windows, and those that must wait. Drop those of cut rows."""
        window = WINDOW if self.patience > 0 else LATE_WINDOW
        now: Pieces = []
        later: Pieces = []
        for row, piece in pieces:
            if row in self.cut:
                continue
            used = self._used.get(row, 0)
            if used < window:
                self._used[row] = used + cost_of(piece)
                now.append((row, piece))
            else:
                later.append((row, piece))
        return now, later

    def begin_wait(self) -> None:
        """Start recording which rows get credit."""
        self._granted.clear()

    def may_go_on(self, pieces: Pieces) -> bool:
        """Return whether any waiting piece can be sent or dropped."""
        return any(row in self.cut or self._used.get(row, 0) < WINDOW for row, _ in pieces)

    def end_wait(self, seconds: float, pieces: Pieces) -> list[int]:
        """Charge a wait for these pieces, and cut rows if no time is left.

        Returns:
            The newly cut rows, in order.
        """
        before, self.patience = self.patience, self.patience - seconds
        if self.patience > 0:
            return []
        most = WINDOW if before > 0 else LATE_WINDOW
        spared = self._granted if before > 0 else ()
        short = {row for row, _ in pieces if row not in self.cut and self._used.get(row, 0) >= most}
        cut = sorted(short.difference(spared))
        self.cut.update(cut)
        return cut
