"""A worker's output: logged in whole lines, the last ones kept for its exit report.

A handler may print without end, and other models must not pay for that. Three bounds keep printing cheap:

* One read takes at most the content of the pipe. Full pipes are read in turn (`Pace`): all together 500 times a second,
  and the rest of the loop's time is for requests. A handler waits in its `print` only beyond 32 MB a second.
* The log gets the first `MOST_LINES` lines and `MOST_BYTES` bytes of each second. Lines beyond are counted in C and
  reported once a second: 64 KiB of short lines cost 20 µs, where logging each line cost 100 ms.
* The lines of one read are one write of the log.

Lines keep their order within stdout and within stderr; lines of the two that come at the same time may change places.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import cast

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.logs import OutputLog


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


KEPT_LINES = 50
MOST_LINES = 5000  # a period, of one worker
MOST_BYTES = 1024 * 1024  # a period, of one worker
PERIOD = 1.0  # seconds


class Output:
    """The stdout and stderr of a worker, or of a template.

    Attributes:
        stdout, stderr: the protocols of the two pipes.

    Args:
        log: called with one or more lines, once the process is known or both pipes have ended.
        on_close: called when both pipes have ended and all lines were logged.
        pace: shared with the other pipes of the daemon.
    """

    def __init__(self, log: OutputLog, on_close: Callable[[], None], clock: Clock, pace: Pace) -> None:
        self.stdout = PipeReader(partial(self._take, "stdout"), self._ended, clock, pace)
        self.stderr = PipeReader(partial(self._take, "stderr"), self._ended, clock, pace)
        self._log = log
        self._on_close = on_close
        self._clock = clock
        self._pid: int | None = None
        self._early: list[tuple[str, str]] = []  # came before the process was known
        self._last: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._period_ends = 0.0
        self._lines = self._bytes = 0  # that the log still takes in this period
        self._dropped = 0  # dropped lines that were not reported yet
        self._telling: Timer | None = None

    async def connect(self, loop: asyncio.AbstractEventLoop, stdout: int, stderr: int) -> None:
        """Read these two pipes, which are closed at their ends."""
        await read_pipe(loop, lambda: self.stdout, stdout)
        await read_pipe(loop, lambda: self.stderr, stderr)

    def born(self, pid: int) -> None:
        """Note the process that writes."""
        self._pid = pid
        early, self._early = self._early, []
        for text, stream in early:
            self._log(text, pid, stream)

    @property
    def closed(self) -> bool:
        """Whether both pipes have ended."""
        return self.stdout.closed and self.stderr.closed

    @property
    def last(self) -> list[str]:
        """The newest lines, oldest first; also those that were not logged."""
        return [_text(line) for line in self._last]

    def hurry(self) -> None:
        """Read on now: the worker has ended, and its last lines are in the pipes."""
        self.stdout.hurry()
        self.stderr.hurry()

    def _ended(self) -> None:
        if self.closed:
            self._tell_dropped()
            if self._pid is None:
                self.born(0)
            self._on_close()

    def _take(self, stream: str, lines: bytes) -> None:
        """Take whole lines, each with its line feed."""
        now = self._clock.now()
        self._last.extend(lines[:-1].rsplit(b"\n", KEPT_LINES)[-KEPT_LINES:])
        if now >= self._period_ends:
            self._tell_dropped()
            self._period_ends = now + PERIOD
            self._lines, self._bytes = MOST_LINES, MOST_BYTES
        count = lines.count(b"\n")
        passed = lines if len(lines) <= self._bytes else lines[: lines.rfind(b"\n", 0, self._bytes) + 1]
        taken = count if passed is lines else passed.count(b"\n")
        if taken > self._lines:
            taken = self._lines
            passed = b"\n".join(passed.split(b"\n", taken)[:taken]) + b"\n" if taken else b""
        self._lines -= taken
        self._bytes -= len(passed)
        if taken:
            self._write(_text(passed[:-1]), stream)
        if taken < count:
            self._lines = 0  # the logged part of a period is its beginning, without gaps
            self._dropped += count - taken
            if self._telling is None:
                self._telling = self._clock.later(self._period_ends - now, self._tell_dropped)

    def _tell_dropped(self) -> None:
        if self._telling is None:
            return
        self._telling.cancel()
        self._telling = None
        dropped, self._dropped = self._dropped, 0
        are = "line was" if dropped == 1 else "lines were"
        self._write(
            f"({dropped} {are} dropped here: the log takes {MOST_LINES} lines, and {MOST_BYTES // 1024**2} MiB,"
            f" a second of one worker)",
            "daemon",
        )

    def _write(self, text: str, stream: str) -> None:
        if self._pid is None:
            self._early.append((text, stream))
        else:
            self._log(text, self._pid, stream)


def _text(lines: bytes) -> str:
    """Decode lines; a byte that is no UTF-8 is shown as `\\xff`."""
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").removesuffix(b"\r")
    return lines.decode("utf-8", "backslashreplace")
