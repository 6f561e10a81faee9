"""One pipe of a worker, its stdout or stderr: read in whole lines, and no more often than the daemon can afford.

One read takes at most the content of the pipe. A pipe that is always full waits for its turn (`Pace`), so all such
pipes together are read 500 times a second, and the rest of the loop's time is for requests. A handler waits in its
`print` only beyond 32 MB a second.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import cast

from tsctl.daemon.core.clock import Clock, Timer


async def read_pipe(loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol], descriptor: int) -> None:
    """Read a pipe, which uvloop closes at its end. (asyncio's own loop would leave that to the object.)"""
    await loop.connect_read_pipe(protocol, os.fdopen(descriptor, "rb", 0, closefd=False))


async def connect(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol], sock: socket.socket
) -> None:
    """Talk over a connected Unix socket, which the loop closes."""
    transport, _ = await loop.create_unix_connection(protocol, sock=sock)
    if transport.is_closing():  # and perhaps closed: then uvloop did not know the object yet
        sock.detach()


LONGEST_LINE = 16 * 1024  # bytes; a longer line is cut into lines of this size
READ_EVERY = 0.002  # seconds between two reads of pipes that do not get empty
_LARGE = 4096  # bytes of a read after which more are to be expected at once


class Pace:
    """The turns of all pipes with much output."""

    def __init__(self) -> None:
        self._next = 0.0

    def turn(self, now: float) -> float:
        """Return the seconds until the next free turn, which is then taken."""
        self._next = max(now, self._next) + READ_EVERY
        return self._next - now


class PipeReader(asyncio.Protocol):
    """Reads one pipe.

    Attributes:
        closed: the pipe has ended.

    Args:
        take: called with one or more whole lines, each with its line feed.
        on_close: called when the pipe has ended and all lines were taken.
        pace: shared with the other pipes of the daemon.
    """

    def __init__(self, take: Callable[[bytes], None], on_close: Callable[[], None], clock: Clock, pace: Pace) -> None:
        self.closed = False
        self._take = take
        self._on_close = on_close
        self._clock = clock
        self._pace = pace
        self._transport: asyncio.ReadTransport | None = None
        self._waiting: Timer | None = None  # for the next turn to read
        self._read_at = -READ_EVERY
        self._rest = b""  # of a line that has not ended

    def hurry(self) -> None:
        """Read on now: the worker has ended, and its last lines are in the pipe."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._read_on()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        now = self._clock.now()
        if self._transport is not None and (len(data) >= _LARGE or now - self._read_at < READ_EVERY):
            self._transport.pause_reading()
            self._waiting = self._clock.later(self._pace.turn(now), self._read_on)
        self._read_at = now
        data = cut(self._rest + data)
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if end:
            self._take(data[:end])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the same either way
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._transport = None
        if self._rest:
            self._take(self._rest + b"\n")
            self._rest = b""
        self.closed = True
        self._on_close()

    def _read_on(self) -> None:
        self._waiting = None
        if self._transport is not None:
            self._transport.resume_reading()


def cut(data: bytes) -> bytes:
    """End each line that is too long where the longest would end, but not within a letter of UTF-8."""
    if len(data) <= LONGEST_LINE:
        return data
    pieces = []
    start = begin = 0
    while len(data) - begin > LONGEST_LINE:
        end = data.rfind(b"\n", begin, begin + LONGEST_LINE + 1)
        if end >= 0:
            begin = end + 1
        else:
            begin += LONGEST_LINE
            for _ in range(3):  # a letter has at most four bytes, of which all but the first are 10xxxxxx
                if data[begin] & 0xC0 != 0x80:
                    break
                begin -= 1
            pieces.append(data[start:begin])
            start = begin
    pieces.append(data[start:])
    return b"\n".join(pieces)
