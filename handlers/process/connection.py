"""The worker's end of the socketpair: whole frames, even if the handler interferes with its process.

A handler lives in this process and can close the connection. The cases:

    closes our descriptor, or puts         the worker exits with EXIT_DISCONNECTED, which tells the daemon
    another file in its place              why; nothing is written to the other file
    forks                                  the child has no connection, and does not keep ours open
    the child returns from the handler     the child exits silently: the parent sends the response
    threads of the handler send pieces     frames are sent one after the other

A thread that waits for credit (pieces.py) reads for all threads, because the main thread may be in the handler or
waiting for a lane of the pipeline. One thread reads at a time; messages for other threads are queued in order.
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
from typing import NoReturn, Protocol

from tsctl.handlers import wire
from tsctl.handlers.requests.rows import failure

PAUSE = 0.02  # seconds without a message until a worker counts as idle; under load the next message comes sooner
# The minimum seconds between two calls of `idle`. Freed memory is fetched again page by page: the next batch of eight
# for ResNet-152 takes 7 % longer, and freeing takes a fiftieth of the batch's time.
BETWEEN = 1.0
# Without any pause for so long `idle` is called all the same: else memory that one odd batch took would be kept for
# good. The next batch of 32 for EfficientNet-Lite0 takes 1.5 s instead of 1 by estimate: 190 000 page faults.
SELDOM = 600.0
READ_SIZE = 64 * 1024  # bytes read at once; the rest of a larger frame is read directly into its buffer
SO_COOKIE = 57  # of linux/socket.h, which Python does not name
# Loops that close "all" descriptors end at 256 or 1024; ours is higher, where the limit allows.
_NUMBER = 4096
_FEWEST = 256  # do not move the descriptor if the limit is this low


class Credited(Protocol):
    """A batch whose clients earn credit (handlers/credit.py)."""

    def grant(self, row: int, count: int) -> None: ...


class Disconnected(Exception):
    """The handler closed the connection, or put another file in its place."""

    def __init__(self) -> None:
        super().__init__("the handler closed the worker's connection to the daemon")


class DaemonConnection:
    """Blocking messages from and to the daemon. One thread may send while another receives.

    Reads are buffered: a small frame takes one system call, and a frame already buffered takes none.

    Attributes:
        number: the descriptor, for a loop that waits until it can be read.
        news: signals that a message arrived or a thread stopped reading; guards the open windows.

    Args:
        idle: called once when no message has come for `PAUSE` seconds, but at least `BETWEEN` seconds after the
            previous call; called again only after another message. Before a message, too, after `SELDOM` seconds.
    """

    def __init__(self, sock: socket.socket, idle: Callable[[], None] | None = None) -> None:
        self._sock = sock
        self._idle = idle
        self._wakes = False  # the kernel ends a receive after `PAUSE`
        self._busy = time.monotonic()  # since when there was neither a pause nor a call of `idle`
        self._idled = self._busy - BETWEEN  # when `idle` was last called
        self.number = sock.fileno()
        self._identity = self._named()
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._view = memoryview(bytearray(READ_SIZE))
        self._start = self._end = 0  # the unread part of the buffer
        self._arena = memoryview(b"")
        self._reading = threading.Lock()
        self._poll = select.poll()  # not select: our descriptor has a high number; one thread polls, which reads
        self._poll.register(self.number, select.POLLIN)
        self._came: deque[wire.ToWorker] = deque()  # messages read by a thread that waited for credit
        self._ended = False  # the daemon closed its end
        self.news = threading.Condition()
        self._waiting = 0  # number of threads waiting for news
        self._windows: dict[int, Credited] = {}

    def send(self, message: wire.ToDaemon) -> None:
        """Send one message.

        Raises:
            Disconnected: the handler closed the connection.
            BrokenPipeError: the daemon is gone.
            ConnectionResetError: the daemon is gone.
            FrameTooLarge: pieces of answers do not fit; whole answers that do not fit become failures.
        """
        try:
            frame = wire.encode(message)
        except wire.FrameTooLarge as error:
            if not isinstance(message, wire.Done):
                raise
            message.answers = [failure(f"The answers of the batch are too large: {error}.") for _ in message.answers]
            frame = wire.encode(message)
        if os.getpid() != self._owner:
            _end_child()
        if not self._is_ours():
            raise Disconnected
        with self._lock:
            self._sock.sendall(frame)

    def map_arena(self) -> None:
        """Map the arena, which holds large values, if the daemon shares one. Must precede the first receive."""
        head, descriptors, _, _ = socket.recv_fds(self._sock, READ_SIZE, 1)
        self._view[: len(head)] = head
        self._end = len(head)
        for descriptor in descriptors:
            share = self.receive()
            if isinstance(share, wire.Share):
                self._arena = memoryview(mmap.mmap(descriptor, share.size, access=mmap.ACCESS_READ))
            os.close(descriptor)  # the mapping holds its own reference

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message other than Credit; return None when the daemon closed its end.

        Raises:
            Disconnected: the handler closed the connection.
        """
        if self._came or self._ended or not self._reading.acquire(blocking=False):
            self.wait(self._has_come, math.inf)
            return self._came.popleft() if self._came else None
        try:
            # Another thread may have read a message for us meanwhile.
            return self._came.popleft() if self._came else self._next()
        finally:
            self._reading.release()
            if self._waiting:
                with self.news:
                    self.news.notify_all()

    def _has_come(self) -> bool:
        return bool(self._came)

    def arrived(self) -> list[wire.ToWorker | None]:
        """Return the messages other than Credit that have arrived, in order; after None, the daemon closed its end.

        Raises:
            Disconnected: the handler closed the connection.
        """
        came: list[wire.ToWorker | None] = []
        while self._came:
            came.append(self._came.popleft())
        if self._ended:
            came.append(None)
        elif self._reading.acquire(blocking=False):  # else a thread that waits for credit reads
            try:
                while not self._ended and (self._start != self._end or self._poll.poll(0)):
                    message = self._next(one=True)
                    if not isinstance(message, wire.Credit):
                        came.append(message)
            finally:
                self._reading.release()
        return came

    def open(self, batch: int, windows: Credited) -> None:
        """Apply credits for this batch to `windows` from now on."""
        with self.news:
            self._windows[batch] = windows

    def close(self, batch: int) -> None:
        """Stop applying credits for this batch, and wake the threads that wait for them."""
        with self.news:
            self._windows.pop(batch, None)
            self.news.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Read until `done`, or let another thread read; messages already received are read in any case.

        Returns:
            Whether `done` became true within `seconds` and before the daemon closed its end.

        Raises:
            Disconnected: the handler closed the connection.
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
        """Read one message and notify all threads; call with both locks held, returns with only `news` held.

        Returns:
            False if no message came within `seconds`.
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
        """Wait until the socket is readable."""
        try:
            return bool(self._poll.poll(None if seconds == math.inf else math.ceil(seconds * 1000)))
        except OSError as error:
            raise Disconnected from error

    def _next(self, *, one: bool = False) -> wire.ToWorker | None:
        """Return the next message, None at the end. A Credit is applied, and returned only if `one` is set."""
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
        if self._idle is not None:
            if not self._wakes:
                self._busy = time.monotonic()
                self._wake_after(PAUSE)
            if time.monotonic() - self._busy > SELDOM:
                self._rest(self._idle)
        while self._end - self._start < wire.LENGTH.size:
            if not self._read():
                return None
        (length,) = wire.LENGTH.unpack_from(self._view, self._start)
        self._start += wire.LENGTH.size
        there = min(length, self._end - self._start)
        body = bytearray(self._view[self._start : self._start + there])  # one per message: decoded values are views
        self._start += there
        if there < length:
            body, begun = bytearray(length), body
            body[:there] = begun
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
        """Read once, behind the unread bytes; return the number of bytes, 0 when the daemon closed its end."""
        left = bytes(self._view[self._start : self._end])
        self._view[: len(left)] = left
        received = self._receive_into(self._view[len(left) :])
        self._start, self._end = 0, len(left) + received
        return received

    def _receive_into(self, view: memoryview) -> int:
        """Wait for bytes; return how many, 0 when the daemon closed its end."""
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
        """Call `idle`, or postpone the call until `BETWEEN` seconds after the previous one."""
        assert self._idle is not None
        early = self._idled + BETWEEN - time.monotonic()
        self._wake_after(max(0.0, early))
        if early <= 0:
            self._rest(self._idle)

    def _rest(self, idle: Callable[[], None]) -> None:
        idle()
        self._idled = self._busy = time.monotonic()

    def _wake_after(self, seconds: float) -> None:
        """Make the kernel end a receive after so many seconds (0: never), without an extra system call per message."""
        microseconds = math.ceil(seconds * 1e6)
        self._sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(microseconds, 1_000_000))
        )
        self._wakes = seconds == PAUSE

    def leave_in_child(self) -> None:
        """Close the copy in a forked child, so that the daemon sees the connection end when the worker exits."""
        self.news = threading.Condition()  # a thread that does not exist in the child may have locked the old one
        if self._is_ours():
            self._sock.close()

    def _is_ours(self) -> bool:
        """Return whether the descriptor is still the original socket."""
        try:
            return self._named() == self._identity
        except OSError:
            return False

    def _named(self) -> object:
        """Return the kernel's number of the socket, which no other gets: 1 us for each frame, `fstat` 4 us."""
        try:
            return self._sock.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8)
        except OSError:  # gVisor has none, or this is no socket any more
            status = os.fstat(self.number)
            return status.st_dev, status.st_ino


def take_over(descriptor: int) -> socket.socket:
    """Return a socket for an inherited descriptor, moved to a high number and closed on exec."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _number(os.sysconf("SC_OPEN_MAX")))
    except OSError:
        os.set_inheritable(descriptor, False)
        moved = descriptor
    else:
        os.close(descriptor)
    taken = socket.socket(fileno=moved)
    taken.settimeout(None)  # whatever default a model file has set, in the template that this process is forked from
    return taken


def _number(limit: int) -> int:
    """Return the lowest descriptor number that handlers are unlikely to touch.

    Args:
        limit: the maximum number of open files; -1 for unlimited.
    """
    if 0 <= limit <= _FEWEST:
        return 3
    return _NUMBER if limit < 0 or limit > _NUMBER else limit - 1


def _end_child() -> NoReturn:
    with contextlib.suppress(Exception):
        print("a process forked by the handler returned from the handler, and is ended", file=sys.stderr, flush=True)  # noqa: T201
        sys.stdout.flush()
    os._exit(0)
