"""The worker's end of the socketpair: whole frames, whatever the handler does to its process.

A handler lives in this process and can take the connection away. What then happens:

    it closes our descriptor, or puts      the worker leaves with EXIT_DISCONNECTED, and the daemon
    another file in its place              knows why; nothing is written to the other file
    it forks                               the child has no connection, and does not keep it open
    the child comes back from the handler  it ends here, unheard: the answer is the parent's to give
    its threads send pieces                one frame goes after the other
"""

import contextlib
import fcntl
import os
import socket
import sys
import threading
from typing import NoReturn

from handlers import wire

# Loops that close "all" descriptors end at 256 or 1024; ours is above, where the limit allows.
_NUMBER = 4096
_FEWEST = 256  # do not move it where so few may be open


class Disconnected(Exception):
    """The handler has closed the connection, or put something else in its place."""

    def __init__(self) -> None:
        super().__init__("the handler closed the worker's connection to the daemon")


class Connection:
    """Messages from and to the daemon, blocking. A thread may send while another receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._number = sock.fileno()
        status = os.fstat(self._number)
        self._device, self._inode = status.st_dev, status.st_ino
        self._owner = os.getpid()
        self._lock = threading.Lock()

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

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message; None when the daemon has closed its end.

        Raises:
            Disconnected: the connection is gone.
        """
        head = self._exactly(wire.LENGTH.size)
        if head is None:
            return None
        body = self._exactly(wire.LENGTH.unpack(head)[0])
        return None if body is None else wire.decode_for_worker(body)

    def leave_in_child(self) -> None:
        """Close a forked child's copy, so that the daemon sees the connection end when the worker does."""
        if self._is_ours():
            self._sock.close()

    def _is_ours(self) -> bool:
        """Whether the descriptor is still the socket that it was."""
        try:
            status = os.fstat(self._number)
        except OSError:
            return False
        return status.st_ino == self._inode and status.st_dev == self._device

    def _exactly(self, count: int) -> bytearray | None:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            try:
                received = self._sock.recv_into(view)
            except ConnectionResetError:
                return None
            except OSError as error:
                if self._is_ours():
                    raise
                raise Disconnected from error
            if not received:
                return None
            view = view[received:]
        return buffer


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
