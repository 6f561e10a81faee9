"""Bytes of answers that wait for their clients: one budget for all connections, so that they are bounded together.

An answer counts while it waits in the daemon's own buffers: behind an answer that is not complete, or for a client that
does not read. An answer that goes to the client at once never counts. An answer fits where

    its connection     holds nothing else, or at most an eighth of the budget with it
    all connections    hold nothing at all, or at most the budget with it

so one answer of any size can be sent while nothing else waits. Where all connections hold too much, those whose clients
have read nothing for `STUCK` seconds are closed, the longest stuck first, until the answer fits. An answer that still
does not fit is replaced by 503 if none of it was sent; otherwise its connection is closed.
"""

import math
from collections.abc import Callable
from typing import Final, Protocol

from tsctl.daemon.core.errors import LimitReached

STUCK = 2.0  # seconds without a byte read, after which a connection is closed where others need room
SHARE = 8  # one connection may hold this part of the budget
PIECE: Final = 256 * 1024  # bytes written at once; the transport holds so many more, and they do not count
OVERHEAD: Final = 64  # bytes that each piece of a stream costs beside its own: an object, and a place in a list


class NoRoomToSend(LimitReached):
    """The budget for unread answers is spent.

    Args:
        limit: bytes of all waiting answers together.
    """

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"Too many unread answers: they may have {limit:.0f} bytes together (max_sending_bytes),"
            f" those of one connection {limit / SHARE:.0f}. Read the answers, and try again."
        )


class NotRead(LimitReached):
    """A streamed answer was ended because its client did not read."""


class Holder(Protocol):
    """A connection that holds answers."""

    held: int  # bytes

    def has_taken(self) -> bool:
        """Return whether the client read anything since the last call, or its reading is not the bottleneck."""

    def give_up(self) -> None:
        """Close the connection at once, and release its buffers."""


class SendBudget:
    """The budget for answers that wait for their clients.

    Args:
        limit: bytes. Each connection has some more in its transport: a piece, and the kernel's buffer.
        reached: called with a sentence for each answer that is dropped.
        noted: called with the bytes that are counted.
    """

    def __init__(
        self,
        limit: float = math.inf,
        reached: Callable[[str], None] = lambda text: None,
        noted: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.limit = limit
        self._reached = reached
        self._noted = noted
        self.used = 0
        self._since: dict[Holder, float] = {}  # when each holder's client last read something, the longest ago first

    def __repr__(self) -> str:
        return f"<SendBudget {self.used}/{self.limit} bytes of {len(self._since)} connections>"

    def hold(self, who: Holder, count: int, now: float) -> bool:
        """Count bytes that have to wait. Return False, and count nothing, if there is no room for them."""
        if who.held and who.held + count > self.limit / SHARE:
            return False
        if not self._fits(count):
            self._make_room(who, count, now)
            if not self._fits(count):
                return False
        self.count_bytes(who, count, now)
        return True

    def refuse(self) -> NoRoomToSend:
        """Return the error in place of an answer for which there is no room."""
        error = NoRoomToSend(self.limit)
        self._reached(str(error))
        return error

    def count_bytes(self, who: Holder, count: int, now: float) -> None:
        """Count bytes without asking for room: an error in place of an answer."""
        if who not in self._since:
            self._since[who] = now
        who.held += count
        self.used += count
        self._noted(count)

    def taken(self, who: Holder, count: int, now: float) -> None:
        self.drop(who, count)
        if self._since.pop(who, None) is not None and who.held:
            self._since[who] = now

    def drop(self, who: Holder, count: int) -> None:
        """Release bytes that will not be written."""
        who.held -= count
        self.used -= count
        if not who.held:
            self._since.pop(who, None)

    def _fits(self, count: int) -> bool:
        return not self.used or self.used + count <= self.limit

    def _make_room(self, who: Holder, count: int, now: float) -> None:
        """Close stuck connections until `count` bytes fit, but never the one that asks."""
        for other, since in list(self._since.items()):
            if since > now - STUCK or self._fits(count):
                return
            if other.has_taken():
                del self._since[other]
                self._since[other] = now
            elif other is not who:
                other.give_up()
