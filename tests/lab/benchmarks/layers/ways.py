"""Ways in which a daemon and a worker process wake each other, for bare.py: each sends a frame, and waits for one.

batch     a socketpair, as the daemon has it
pipes     a pipe for each direction
spinning  a socketpair, too; the worker asks for up to 50 µs before it sleeps
eventfd   frames in shared memory; an eventfd wakes each end
futex     frames in shared memory; a futex wakes the worker, an eventfd the daemon, whose loop waits for descriptors
"""

import asyncio
import ctypes
import mmap
import os
import signal
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

SIZE = 1 << 18  # bytes of the largest frame
SPIN = 50e-6  # seconds
FUTEX, WAIT, WAKE = 202, 0, 1  # of linux/futex.h; the number of the call on x86-64
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
WORD = struct.Struct("<I")
Arrived = Callable[[bytes], None]


class Way(ABC):
    """Both ends; made before the fork."""

    def begin(self) -> None:  # noqa: B027 - most have nothing to do
        """Leave the daemon's end, in the worker."""

    def forked(self) -> None:  # noqa: B027
        """Leave the worker's end, in the daemon."""

    @abstractmethod
    async def attach(self, arrived: Arrived) -> None:
        """Call back with each frame of the worker, in the daemon's loop."""

    @abstractmethod
    def send(self, frame: bytes) -> None:
        """Send a frame to the worker."""

    @abstractmethod
    def wait(self) -> bytes:
        """Wait for a frame, in the worker; empty when the daemon has ended."""

    @abstractmethod
    def answer(self, frame: bytes) -> None:
        """Send a frame to the daemon."""


class Receiver(asyncio.Protocol):
    """Passes frames on, each of which comes whole."""

    def __init__(self, arrived: Arrived) -> None:
        self.data_received = arrived  # type: ignore[assignment, method-assign]


class Socketpair(Way):
    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._buffer = memoryview(bytearray(SIZE))  # a `recv` of as much would map and unmap pages for each frame

    def begin(self) -> None:
        self._ours.close()

    def forked(self) -> None:
        self._theirs.close()

    async def attach(self, arrived: Arrived) -> None:
        self._transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: Receiver(arrived), sock=self._ours
        )

    def send(self, frame: bytes) -> None:
        self._transport.write(frame)

    def wait(self) -> bytes:
        return bytes(self._buffer[: self._theirs.recv_into(self._buffer)])

    def answer(self, frame: bytes) -> None:
        self._theirs.sendall(frame)


class Pipes(Way):
    def __init__(self) -> None:
        self._there, self._back = os.pipe(), os.pipe()
        self._buffer = memoryview(bytearray(SIZE))

    def begin(self) -> None:
        os.close(self._there[1])
        os.close(self._back[0])

    def forked(self) -> None:
        os.close(self._there[0])
        os.close(self._back[1])

    async def attach(self, arrived: Arrived) -> None:
        asyncio.get_running_loop().add_reader(self._back[0], lambda: arrived(self._read(self._back[0])))

    def send(self, frame: bytes) -> None:
        os.write(self._there[1], frame)

    def wait(self) -> bytes:
        return self._read(self._there[0])

    def answer(self, frame: bytes) -> None:
        os.write(self._back[1], frame)

    def _read(self, end: int) -> bytes:
        return bytes(self._buffer[: os.readv(end, [self._buffer])])


class Spinning(Socketpair):
    def wait(self) -> bytes:
        until = time.monotonic() + SPIN
        while time.monotonic() < until:
            try:
                return bytes(self._buffer[: self._theirs.recv_into(self._buffer, SIZE, socket.MSG_DONTWAIT)])
            except BlockingIOError:
                pass
        return super().wait()


class Shared(Way):
    """Frames in shared memory, each behind its length; two eventfds."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2 * SIZE + 8)
        self._there, self._back = os.eventfd(0), os.eventfd(0)

    def begin(self) -> None:
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)  # no end of file tells of the daemon's end

    async def attach(self, arrived: Arrived) -> None:
        def read() -> None:
            os.eventfd_read(self._back)
            arrived(self._get(SIZE))

        asyncio.get_running_loop().add_reader(self._back, read)

    def send(self, frame: bytes) -> None:
        self._put(0, frame)
        os.eventfd_write(self._there, 1)

    def wait(self) -> bytes:
        os.eventfd_read(self._there)
        return self._get(0)

    def answer(self, frame: bytes) -> None:
        self._put(SIZE, frame)
        os.eventfd_write(self._back, 1)

    def _put(self, start: int, frame: bytes) -> None:
        WORD.pack_into(self._memory, start, len(frame))
        self._memory[start + 4 : start + 4 + len(frame)] = frame

    def _get(self, start: int) -> bytes:
        (length,) = WORD.unpack_from(self._memory, start)
        return self._memory[start + 4 : start + 4 + length]


class Futex(Shared):
    """As `Shared`; a counter at the end of the memory wakes the worker."""

    def __init__(self) -> None:
        super().__init__()
        self._sent = self._seen = 0
        self._address = ctypes.c_void_p(ctypes.addressof(ctypes.c_uint32.from_buffer(self._memory, 2 * SIZE)))
        self._call = ctypes.CDLL(None).syscall

    def send(self, frame: bytes) -> None:
        self._put(0, frame)
        self._sent += 1
        WORD.pack_into(self._memory, 2 * SIZE, self._sent & 0xFFFFFFFF)
        self._call(FUTEX, self._address, WAKE, 1, None, None, 0)

    def wait(self) -> bytes:
        while WORD.unpack_from(self._memory, 2 * SIZE)[0] == self._seen:
            self._call(FUTEX, self._address, WAIT, self._seen, None, None, 0)
        self._seen = (self._seen + 1) & 0xFFFFFFFF
        return self._get(0)


WAYS: dict[str, Callable[[], Way]] = {
    "batch": Socketpair, "pipes": Pipes, "spinning": Spinning, "eventfd": Shared, "futex": Futex,
}  # fmt: skip
