"""What a worker prints: passed on line by line, the last lines kept for its exit report."""

import asyncio
from collections import deque
from collections.abc import Callable

from daemon.workers.processes.descriptors import read_pipe

KEPT_LINES = 50
LONGEST_LINE = 16 * 1024  # bytes; what is longer is cut into lines of this size


_connecting: set[asyncio.Task[object]] = set()  # a loop alone does not keep its tasks


def follow(loop: asyncio.AbstractEventLoop, descriptor: int, log: Callable[[str], None]) -> None:
    """Pass on what comes out of a pipe, which is closed at its end."""
    reader = OutputReader(log, lambda: None)
    task = loop.create_task(read_pipe(loop, lambda: reader, descriptor))
    _connecting.add(task)
    task.add_done_callback(_connecting.discard)


class OutputReader(asyncio.Protocol):
    """Reads the pipe that is a worker's stdout and stderr.

    Attributes:
        last: the newest lines, oldest first.
        closed: the pipe has ended.
    """

    def __init__(self, log: Callable[[str], None], on_close: Callable[[], None]) -> None:
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        self.closed = False
        self._log = log
        self._on_close = on_close
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(self._cut(line))
        self._rest = self._cut(self._rest)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the same either way
        if self._rest:
            self._take(self._rest)
            self._rest = b""
        self.closed = True
        self._on_close()

    def _cut(self, line: bytes) -> bytes:
        """Take what is over the longest line, and give the rest of it."""
        while len(line) > LONGEST_LINE:
            self._take(line[:LONGEST_LINE])
            line = line[LONGEST_LINE:]
        return line

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.last.append(text)
        self._log(text)
