"""The worker's end of the socketpair: whole frames, whatever the handler does to its process.

A handler lives in this process and can take the connection away. What then happens:

    it closes our descriptor, or puts      the worker leaves with EXIT_DISCONNECTED, and the daemon
    another file in its place              knows why; nothing is written to the other file
    it forks                               the child has no connection, and does not keep it open
    the child comes back from the handler  it ends here, unheard: the answer is the parent's to give
    its threads send pieces                one frame goes after the other

Whoever waits for credit (pieces.py) reads for all: the main thread may be in the handler, or wait for a lane of the
pipeline. One thread reads at a time; what it reads for others waits in order.
"""

import contextlib
import fcntl
import math
import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from handlers import wire
from handlers.credit import Windows

PAUSE = 0.02  # seconds without a message after which a worker counts as idle; under load it has the next one by then
# The least seconds from one call of `idle` to the next. Memory that was given back is fetched again page by page:
# the next batch of eight for ResNet-152 takes 7 % more, and giving back a fiftieth of its time.
BETWEEN = 1.0
READ_SIZE = 64 * 1024  # bytes read at once; of a larger frame the rest is read to its place
# Loops that close "all" descriptors end at 256 or 1024; ours is above, where the limit allows.
_NUMBER = 4096
_FEWEST = 256  # do not move it where so few may be open


class Disconnected(Exception):
    """The handler has closed the connection, or put something else in its place."""

    def __init__(self) -> None:
        super().__init__("the handler closed the worker's connection to the daemon")


class Connection:
    """Messages from and to the daemon, blocking. A thread may send while another receives.

    It reads what is there, so that a small frame takes one call, and one that came meanwhile takes none.

    Attributes:
        news: something came, or a thread has stopped reading; guards the windows that were opened.

    Args:
        idle: called once when nothing has come for `PAUSE` seconds, or for up to `BETWEEN` if it was called a
            short time ago; and again after the next message.
    """

    def __init__(self, sock: socket.socket, idle: Callable[[], None] | None = None) -> None:
        self._sock = sock
        self._idle = idle
        self._wakes = False  # the kernel ends a receive after `PAUSE`
        self._idled = -math.inf  # when `idle` was called last, by the monotonic clock
        self._number = sock.fileno()
        status = os.fstat(self._number)
        self._device, self._inode = status.st_dev, status.st_ino
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._view = memoryview(bytearray(READ_SIZE))
        self._start = self._end = 0  # of what was read and not yet taken
        self._arena = memoryview(b"")
        self._reading = threading.Lock()
        self._came: deque[wire.ToWorker] = deque()  # what a thread has read that waited for credit
        self._ended = False  # the daemon has closed its end
        self.news = threading.Condition()
        self._waiting = 0  # threads that wait for news
        self._windows: dict[int, Windows] = {}

    def send(self, message: wire.ToDaemon) -> None:
        """Send one message.

        Raises:
            Disconnected: the connection is gone.
            BrokenPipeError, ConnectionResetError: the daemon is gone.
        """
        frame = wire.encode(message)
        if os.getpid() != self._owner:
            _end_child()
        if not self._is_ours():
            raise Disconnected
        with self._lock:
            self._sock.sendall(frame)

    def map_arena(self) -> None:
        """Map the memory in which large values are, if the daemon shares it. Nothing may have been received yet."""
        head, descriptors, _, _ = socket.recv_fds(self._sock, READ_SIZE, 1)
        self._view[: len(head)] = head
        self._end = len(head)
        for descriptor in descriptors:
            share = self.receive()
            if isinstance(share, wire.Share):
                self._arena = memoryview(mmap.mmap(descriptor, share.size, access=mmap.ACCESS_READ))
            os.close(descriptor)  # the map has one of its own

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message that is no Credit; None when the daemon has closed its end.

        Raises:
            Disconnected: the connection is gone.
        """
        if self._came or self._ended or not self._reading.acquire(blocking=False):
            self.wait(lambda: bool(self._came), math.inf)
            return self._came.popleft() if self._came else None
        try:
            # Another thread may have read meanwhile, for us.
            return self._came.popleft() if self._came else self._next()
        finally:
            self._reading.release()
            if self._waiting:
                with self.news:
                    self.news.notify_all()

    def open(self, batch: int, windows: Windows) -> None:
        """Apply what the daemon grants to this batch from now on."""
        with self.news:
            self._windows[batch] = windows

    def close(self, batch: int) -> None:
        """The batch has ended; threads that wait for its credit look again."""
        with self.news:
            self._windows.pop(batch, None)
            self.news.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Read until `done`, or let another thread read; what is there already is read in any case.

        Returns:
            Whether it was done within so many seconds, and before the daemon closed its end.

        Raises:
            Disconnected: the connection is gone.
        """
        until = time.monotonic() + seconds
        with self.news:
            self._waiting += 1
            try:
                while not done():
                    left = until - time.monotonic()
                    if self._ended:
                        return False
                    if self._reading.acquire(blocking=False):
                        if not self._read_for_all(max(0.0, left)):
                            return False
                    elif left <= 0:
                        return False
                    else:
                        self.news.wait(None if left == math.inf else left)
                return True
            finally:
                self._waiting -= 1

    def _read_for_all(self, seconds: float) -> bool:
        """Read one message, and tell all threads; called with both locks, ends with `_news` only.

        Returns:
            False if nothing came within so many seconds.
        """
        self.news.release()
        try:
            came = self._end > self._start or self._comes(seconds)
            if came:
                message = self._next(one=True)
                if message is not None and not isinstance(message, wire.Credit):
                    self._came.append(message)
        finally:
            self._reading.release()
            self.news.acquire()
            self.news.notify_all()
        return came

    def _comes(self, seconds: float) -> bool:
        """Wait until something can be read."""
        try:
            poll = select.poll()  # not select: our descriptor has a high number
            poll.register(self._number, select.POLLIN)
            return bool(poll.poll(None if seconds == math.inf else math.ceil(seconds * 1000)))
        except OSError as error:
            raise Disconnected from error

    def _next(self, *, one: bool = False) -> wire.ToWorker | None:
        """Read the next message; a Credit is applied, and only with `one` returned. None at the end."""
        while True:
            message = self._message()
            if message is None:
                self._ended = True
            elif isinstance(message, wire.Credit):
                with self.news:
                    windows = self._windows.get(message.batch)
                    if windows is not None:
                        windows.grant(message.row, message.count)
                    self.news.notify_all()
                if not one:
                    continue
            return message

    def _message(self) -> wire.ToWorker | None:
        if self._idle is not None and not self._wakes:
            self._wake_after(PAUSE)
        while self._end - self._start < wire.LENGTH.size:
            if not self._read():
                return None
        (length,) = wire.LENGTH.unpack_from(self._view, self._start)
        self._start += wire.LENGTH.size
        there = min(length, self._end - self._start)
        body = bytearray(length)  # of its own: what is decoded are views into it
        body[:there] = self._view[self._start : self._start + there]
        self._start += there
        missing = memoryview(body)[there:]
        while missing:
            received = self._receive_into(missing)
            if not received:
                return None
            missing = missing[received:]
        message: wire.ToWorker = wire.decode_for_worker(body)
        if isinstance(message, wire.Predict):
            for stored in message.stored:
                name, kind, _ = message.rows[stored.row].params[stored.param]
                value = self._arena[stored.offset : stored.offset + stored.length]
                message.rows[stored.row].params[stored.param] = (name, kind, value)
        return message

    def _read(self) -> int:
        """Read once, after what is left of the last time; gives 0 when the daemon has closed its end."""
        left = bytes(self._view[self._start : self._end])
        self._view[: len(left)] = left
        received = self._receive_into(self._view[len(left) :])
        self._start, self._end = 0, len(left) + received
        return received

    def _receive_into(self, view: memoryview) -> int:
        """Wait for bytes; gives how many, 0 when the daemon has closed its end."""
        while True:
            try:
                return self._sock.recv_into(view)
            except BlockingIOError:
                self._come_to_rest()
            except ConnectionResetError:
                return 0
            except OSError as error:
                if self._is_ours():
                    raise
                raise Disconnected from error

    def _come_to_rest(self) -> None:
        """Call `idle`, or wait for a message until the last call is long enough ago."""
        assert self._idle is not None
        early = self._idled + BETWEEN - time.monotonic()
        self._wake_after(max(0.0, early))
        if early <= 0:
            self._idle()
            self._idled = time.monotonic()

    def _wake_after(self, seconds: float) -> None:
        """Have the kernel end a receive after so many seconds (0: never), without a further call for each message."""
        microseconds = math.ceil(seconds * 1e6)
        self._sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(microseconds, 1_000_000))
        )
        self._wakes = seconds == PAUSE

    def leave_in_child(self) -> None:
        """Close a forked child's copy, so that the daemon sees the connection end when the worker does."""
        self.news = threading.Condition()  # a thread that the child does not have may have locked it
        if self._is_ours():
            self._sock.close()

    def _is_ours(self) -> bool:
        """Whether the descriptor is still the socket that it was."""
        try:
            status = os.fstat(self._number)
        except OSError:
            return False
        return status.st_ino == self._inode and status.st_dev == self._device


def take_over(descriptor: int) -> socket.socket:
    """Make a socket of an inherited descriptor, with a number that is out of the way, closed on exec."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _number(os.sysconf("SC_OPEN_MAX")))
    except OSError:
        os.set_inheritable(descriptor, False)
        return socket.socket(fileno=descriptor)
    os.close(descriptor)
    return socket.socket(fileno=moved)


def _number(limit: int) -> int:
    """Say from which number on a descriptor is out of the way.

    Args:
        limit: of open files; -1 for none.
    """
    if 0 <= limit <= _FEWEST:
        return 3
    return _NUMBER if limit < 0 or limit > _NUMBER else limit - 1


def _end_child() -> NoReturn:
    with contextlib.suppress(Exception):
        print("a process that the handler forked came back from it, and ends here", file=sys.stderr, flush=True)  # noqa: T201
        sys.stdout.flush()
    os._exit(0)
