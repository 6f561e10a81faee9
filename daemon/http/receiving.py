"""Bytes of bodies that are being received: one budget for all connections, so that slow uploads have a bound together.

Bytes count when they have arrived, not when they are announced: who announces much and sends nothing takes
nothing away. A body that comes whole in one piece never counts, and one that is complete counts no more: the
queue of its version has bounds of its own, in jobs and in bytes, and a version whose workers are slow must not
keep others from being asked.

Where the budget is spent, a connection reads no further until there is room, at most for `PATIENCE` seconds;
the first that waits goes on first.
"""

import math
from typing import Protocol

from daemon.errors import DaemonError
from daemon.places import PAGE

STEP = 64 * 1024  # bytes that who has waited may receive before it is asked again
PATIENCE = 1.0  # seconds


class NoRoom(DaemonError):
    """So many bodies are being received that this one found no room.

    Args:
        limit: bytes that all of them may have together.
    """

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"Too much is being received: all request bodies that are on their way may have {limit:.0f} bytes"
            " together (max_receiving_bytes). Try again later."
        )


class Waiting(Protocol):
    """A connection whose body has to wait."""

    def go_on(self, granted: int) -> None:
        """Read again; so many bytes more count as received already."""


class Receiving:
    """The budget.

    Args:
        limit: bytes. More may be there by what each connection reads at once when it finds that there is no room:
            a page of a large body, 32 KiB of one that comes in chunks.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: dict[Waiting, None] = {}

    def __repr__(self) -> str:
        return f"<Receiving {self.used}/{self.limit} bytes, {len(self._waiting)} wait>"

    @property
    def at_once(self) -> float:
        """The most bytes that one connection should read now: a part of what is left.

        Only a part, so that all that read in one turn of the loop do not pass the limit together.
        """
        return max(PAGE, (self.limit - self.used) / 16)

    def add(self, count: int) -> bool:
        """Count what has arrived; False if nothing more may."""
        self.used += count
        return self.used <= self.limit

    def wait(self, who: Waiting) -> None:
        """Tell `who`, once, when there is room."""
        self._waiting[who] = None

    def free(self, count: int, who: Waiting) -> None:
        """Count no more what was counted for a body, which does not wait any more, and let others go on."""
        self.used -= count
        self._waiting.pop(who, None)
        while self._waiting and self.used + STEP <= self.limit:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self.used += STEP
            first.go_on(STEP)
