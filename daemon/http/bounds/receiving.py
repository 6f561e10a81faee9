"""Bytes of bodies that are being received: one budget for all connections, so that slow uploads are bounded together.

Bytes count when they arrive, not when they are announced: a client that announces much and sends nothing takes
nothing away. A body that arrives whole in one piece never counts, and a complete body counts no more: the
queue of its version has its own bounds, in jobs and in bytes, and a version with slow workers must not
block requests to other versions.

When the budget is spent, a connection reads no further until there is room, at most for `PATIENCE` seconds;
the first connection to wait resumes first.
"""

import math
from collections.abc import Callable
from typing import Protocol

from tsctl.daemon.core.errors import LimitReached
from tsctl.daemon.core.places import PAGE

STEP = 64 * 1024  # bytes that a waiting connection may receive before it is counted again
PATIENCE = 1.0  # seconds


class NoRoom(LimitReached):
    """The budget for request bodies is spent.

    Args:
        limit: bytes of all bodies together.
    """

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"The daemon is receiving too much: request bodies in flight may have {limit:.0f} bytes together"
            " (max_receiving_bytes). Try again later."
        )


class Waiting(Protocol):
    """A connection whose body has to wait."""

    def go_on(self, granted: int) -> None:
        """Resume reading; `granted` more bytes are already counted."""


class ReceiveBudget:
    """The budget for bodies that are being received.

    Args:
        limit: bytes. A connection that finds no room may exceed the limit by one read: a page of a large body, 32 KiB
            of a chunked one.
        reached: called with a sentence for each body that is refused.
        noted: called with the bytes that are counted, and with those of bodies that come by no connection of HTTP.
    """

    def __init__(
        self,
        limit: float = math.inf,
        reached: Callable[[str], None] = lambda text: None,
        noted: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.limit = limit
        self._reached = reached
        self.noted = noted
        self.used = 0
        self._waiting: dict[Waiting, None] = {}

    def __repr__(self) -> str:
        return f"<ReceiveBudget {self.used}/{self.limit} bytes, {len(self._waiting)} wait>"

    @property
    def at_once(self) -> float:
        """The most bytes that one connection should read now: a part of the remaining budget.

        A part only, so that all connections that read in one turn of the loop do not exceed the limit together.
        """
        return max(PAGE, (self.limit - self.used) / 16)

    def count_bytes(self, count: int) -> bool:
        """Count received bytes; return False if no more may be received."""
        self.used += count
        self.noted(count)
        return self.used <= self.limit

    def refuse(self) -> NoRoom:
        """Return the error for a body that has waited in vain."""
        error = NoRoom(self.limit)
        self._reached(str(error))
        return error

    def wait(self, who: Waiting) -> None:
        """Call `who.go_on`, once, when there is room."""
        self._waiting[who] = None

    def free(self, count: int, who: Waiting | None = None) -> None:
        """Release a body's bytes, stop its waiting (of one that never waits: None), and resume others in order."""
        self.used -= count
        if who is not None:
            self._waiting.pop(who, None)
        while self._waiting and self.used + STEP <= self.limit:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self.used += STEP
            first.go_on(STEP)
