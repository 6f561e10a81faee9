"""How much a batch may stream: what is under way to the client of a row has a window of 1 MiB.

A row whose window is used up waits until its client has taken something. A batch waits for `PATIENCE` seconds in all,
for all its rows together. Then the rows that took nothing are cut: the rest of their answers is dropped. The other
rows go on in a window of 8 MiB, without waiting; a row that uses that up is cut, too.

A piece goes while anything is left of the window, whatever its size. No threads and no sockets here.
"""

from collections.abc import Iterable

from handlers import wire

WINDOW = 1024 * 1024  # bytes
LATE_WINDOW = 8 * WINDOW
GRANT = WINDOW // 2  # bytes that a client has taken when the worker is told
PATIENCE = 2.0  # seconds
OVERHEAD = 64  # bytes that a piece costs the daemon beside its own

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
        self._used: dict[int, int] = {}  # row → bytes under way to its client
        self._granted: set[int] = set()  # rows whose clients took something since the last wait began

    def __repr__(self) -> str:
        return f"<Windows used={self._used} cut={sorted(self.cut)} patience={self.patience:g} s>"

    def grant(self, row: int, count: int) -> None:
        """Take a Credit of the daemon."""
        if count <= 0:
            self.cut.add(row)
        else:
            self._used[row] = self._used.get(row, 0) - count
            self._granted.add(row)

    def split(self, pieces: Iterable[tuple[int, wire.Answer]]) -> tuple[Pieces, Pieces]:
        """Return the pieces that go now, and charge them, and those that have to wait. Drop those of cut rows."""
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
        """Note from now on which rows get credit."""
        self._granted.clear()

    def may_go_on(self, pieces: Pieces) -> bool:
        """Return whether any of the pieces that wait can go, or need not."""
        return any(row in self.cut or self._used.get(row, 0) < WINDOW for row, _ in pieces)

    def end_wait(self, seconds: float, pieces: Pieces) -> list[int]:
        """Charge a wait for these pieces, and cut rows if no time is left.

        Returns:
            The rows that are cut now, in order.
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
