"""The connections of the page's listener, of which there is a limited number, and which of them makes room.

A connection is a stranger's until one of its requests had the secret. Strangers make room for others, so nobody locks
the operator out with connections that say nothing, and the peer with the most of them goes first. A connection whose
request with the secret is being answered is never closed for another.
"""

import contextlib
import io
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tsctl.logs.merging import merged
from tsctl.logs.sources import model_source

LINES = 100
LONGEST = 2000  # characters of a line


def log_document(state_dir: Path, name: str, version: str) -> dict[str, Any]:
    """Return the last lines, the oldest first.

    Args:
        name, version: without a slash; the version may be one that has written nothing.
    """
    lines = [line.shown(named=False) for line in merged([model_source(state_dir, name, version)], LINES, None)]
    return {"lines": [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines]}


class HeldConnection:
    """One connection.

    Attributes:
        peer: its IP address.
        known: one of its requests had the secret.
        busy: such a request is being answered.
    """

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.known = False
        self.busy = False


def leaves(places: Iterable[HeldConnection]) -> HeldConnection | None:
    """Return which connection makes room for another; None if all are being answered.

    Args:
        places: the oldest connection first.
    """
    idle = [each for each in places if not each.busy]
    strangers = [each for each in idle if not each.known] or idle
    share = Counter(each.peer for each in strangers)
    return max(strangers, key=lambda each: share[each.peer], default=None)  # of equal ones the oldest


class HeldConnections:
    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[socket.socket, HeldConnection] = {}
        self._lock = threading.Lock()

    def admit(self, connection: socket.socket, peer: str) -> bool:
        """Admit a connection, if need be in place of one that is closed for it; return whether it is admitted."""
        with self._lock:
            if len(self._held) >= self._most:
                victim = leaves(self._held.values())
                if victim is None:
                    return False
                other = next(each for each, place in self._held.items() if place is victim)
                del self._held[other]
                with contextlib.suppress(OSError):  # its thread reads the end; not SSLSocket's, which forgets the TLS
                    socket.socket.shutdown(other, socket.SHUT_RDWR)
            self._held[connection] = HeldConnection(peer)
            return True

    def leave(self, connection: socket.socket) -> None:
        """Free the place of a connection that has ended."""
        with self._lock:
            self._held.pop(connection, None)

    def answering(self, connection: socket.socket) -> None:
        """Note that a request of the connection had the secret, and is being answered."""
        with self._lock:
            if place := self._held.get(connection):
                place.known = place.busy = True

    def answered(self, connection: socket.socket) -> None:
        """Note that the connection waits for its next request."""
        with self._lock:
            if place := self._held.get(connection):
                place.busy = False


class TimedReading(io.RawIOBase):
    """The bytes of a connection until a deadline, however slowly they come.

    Args:
        patience: seconds that a write may take.

    Raises:
        TimeoutError: the deadline has passed.
    """

    def __init__(self, connection: socket.socket, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._patience = patience
        self._clock = clock
        self._until = clock() + patience

    def within(self, seconds: float) -> None:
        self._until = self._clock() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the bytes that are there, or wait for some until the deadline."""
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("the request did not come in time")
        self._connection.settimeout(left)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(self._patience)
