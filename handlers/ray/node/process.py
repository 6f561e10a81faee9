"""One worker's process on its node: frames on a socketpair, output on pipes, and its end."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.ray.frames import DONE, batch_of, tag_of

MOST_OUTPUT = 256 * 1024  # bytes that wait for the bridge; then the process waits, as at a full pipe
LAST_WORDS = 1.0  # seconds for the pipes to close after the process's end: a child may hold them open


class ProcessNews(NamedTuple):
    """The news of the process since the last call: frames with their numbers; output; its return code."""

    frames: list[tuple[int, bytes]]
    stdout: bytes
    stderr: bytes
    code: int | None


class NodeProcess(asyncio.Protocol):
    """A worker's process on this node. As a protocol it is the actor's end of the socketpair.

    Attributes:
        pid: the process id.

    Args:
        changed: called when there is news.
    """

    def __init__(self, directory: Path, environment: dict[str, str], changed: Callable[[], None]) -> None:
        self._changed = changed
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._frames: list[tuple[int, bytes]] = []
        self._number = 0
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}  # batch → its Done
        self._output = {"stdout": bytearray(), "stderr": bytearray()}
        self._open = {"stdout", "stderr", "socket"}
        self._over = False
        self._loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tsctl.handlers.worker", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                bufsize=0, pass_fds=(theirs.fileno(),), start_new_session=True, cwd=directory, env=environment,
            )  # fmt: skip
        self.pid = self._process.pid
        self._ours = ours
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._pipes = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        for name in self._pipes:
            self._read_on(name)

    async def connect(self) -> None:
        """Begin to talk to the process."""
        await self._loop.create_unix_connection(lambda: self, sock=self._ours)

    @property
    def news(self) -> bool:
        """Whether there is news."""
        return bool(self._frames or self._over or any(self._output.values()))

    def take_news(self) -> ProcessNews:
        """Return the news, once."""
        frames, self._frames = self._frames, []
        out, err = (bytes(each) for each in self._output.values())
        for name, each in self._output.items():
            if len(each) >= MOST_OUTPUT and name in self._open:
                self._read_on(name)
            each.clear()
        return ProcessNews(frames, out, err, self._process.returncode if self._over else None)

    def write(self, frame: bytes) -> None:
        """Send the process a frame."""
        if self._transport is not None:
            self._transport.writelines((wire.LENGTH.pack(len(frame)), frame))

    def done_of(self, batch: int) -> "asyncio.Future[tuple[int, bytes]]":
        """Return a future for the Done of a batch, which then is no news."""
        self._waiting[batch] = future = self._loop.create_future()
        return future

    def close(self) -> None:
        """Close the socket: the process leaves."""
        if self._transport is not None:
            self._transport.close()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # of a socket

    def data_received(self, data: bytes) -> None:
        for each in self._reader.feed(data):
            frame, number = bytes(each), self._number
            self._number += 1
            if tag_of(frame) == DONE and (waiting := self._waiting.pop(batch_of(frame), None)):
                waiting.set_result((number, frame))
            else:
                self._frames.append((number, frame))
        if self._frames:
            self._changed()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the process's end says how
        self._closed("socket")

    # Output and end.

    def _read_on(self, name: str) -> None:
        self._loop.add_reader(self._pipes[name].fileno(), self._read, name)

    def _read(self, name: str) -> None:
        pipe, kept = self._pipes[name], self._output[name]
        data = os.read(pipe.fileno(), 64 * 1024)
        kept += data
        if not data or len(kept) >= MOST_OUTPUT:
            self._loop.remove_reader(pipe.fileno())
        if not data:
            pipe.close()
            self._closed(name)
        else:
            self._changed()

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(
                self.pid, signal.SIGKILL
            )  # its children; before it is reaped, so that the number is still its own
        self._process.wait()
        os.close(self._pidfd)
        self._last_words = self._loop.call_later(LAST_WORDS, self._end)
        self._closed("process")

    def _closed(self, what: str) -> None:
        self._open.discard(what)
        if not self._open and self._process.returncode is not None:
            self._end()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        self._last_words.cancel()
        for pipe in self._pipes.values():
            if not pipe.closed:
                self._loop.remove_reader(pipe.fileno())
                pipe.close()
        self._changed()
