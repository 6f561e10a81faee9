"""A worker's output: logged in whole lines, the last ones kept for its exit report.

A handler may print without end, and other models must not pay for that. Three bounds keep printing cheap:

* Full pipes are read in turn (pipe.py).
* The log gets the first `MOST_LINES` lines and `MOST_BYTES` bytes of each second. Lines beyond are counted in C and
  reported once a second: 64 KiB of short lines cost 20 µs, where logging each line cost 100 ms.
* The lines of one read are one write of the log.

Lines keep their order within stdout and within stderr; lines of the two that come at the same time may change places.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.workers.processes.pipe import Pace, PipeReader, read_pipe

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
