"""Memory that the daemon shares with its workers: large bodies are received there, and read from there.

One arena serves the whole daemon, since a body's worker is unknown while the body arrives. The arena is
a memfd of a fixed size, and takes real memory only where something was written. A worker gets a
read-only descriptor, so none can spoil another's request, and a killed worker harms no other.

Bodies that do not fit go over the socket: the arena never fails.

A place in the arena is owned by its readers and writers, and is free when the last one has finished. Each owner has its
own `Lease`:

    the connection   while the body is being received           parsing/body.py
    the job          until it ends                              job.py
    each worker      until the batch is reported as done,       workers/inflight.py
    that was sent    even an overdue one, or the process has
    the job          ended, which a pidfd reports: not a kill,
                     not the end of a socket

A worker reads a place at the beginning of the batch, and perhaps again later (isolation): so the lease does not
depend on the fate of the job.

An announced body gets a place for all its bytes, so that they are received where they stay. Unreceived parts are the
first to be reclaimed: when no place is left, bodies that are still arriving give up theirs, the one that began first
before all others, and are received elsewhere.
"""

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tsctl.daemon.core.places import Places, pages
from tsctl.daemon.core.steps import Steps

SHARED_FROM = 64 * 1024  # bytes; below, the socket costs less: eight bodies of 100 B 103 µs there and back
SIZE = 1024**3  # bytes of addresses, not of memory
# Freed memory below this offset is kept, so that it need not be cleared and mapped anew: the lowest free place
# is taken first. Memory above is returned to the system.
KEPT = 32 * 1024**2
GIVEN_AT_ONCE = 4 * 1024**2  # bytes: 0.7 ms; 64 MiB took the event loop 10 ms (tests/lab/benchmarks/callbacks.py)
COPIED_AT_ONCE = 1024**2  # bytes: 0.1 ms, or 0.6 ms into memory that is fresh
_ASKED = 64  # arriving bodies that are asked to give up their places for another, at most


class Memory(Protocol):
    """The memory that contains places.

    Attributes:
        view: all of the memory.
    """

    @property
    def view(self) -> memoryview: ...

    def take(self, length: int) -> "Lease | None":
        """Return a place of `length` bytes; None if there is none."""

    def free(self, offset: int, length: int, *, written: bool = True) -> None:
        """Free a place, or pages of it, after its last lease has ended. Callable at any time, on any thread.

        Args:
            written: whether something may have been written there.
        """


class Place:
    """One place in the memory; its references are its leases, and the last one frees the place."""

    __slots__ = ("length", "memory", "offset")

    def __init__(self, memory: Memory, offset: int, length: int) -> None:
        self.memory = memory
        self.offset = offset
        self.length = length

    def cut(self, length: int) -> None:
        kept, had = pages(length), pages(self.length)
        self.length = length
        if kept < had:
            self.memory.free(self.offset + kept, had - kept, written=False)

    def __del__(self) -> None:
        self.memory.free(self.offset, self.length)


class Lease:
    """A lease of bytes in the arena, which stay there as long as there is any lease of them, or of another part."""

    __slots__ = ("_place", "length", "offset")

    def __init__(self, place: Place, offset: int, length: int) -> None:
        self._place = place
        self.offset = offset
        self.length = length

    def __repr__(self) -> str:
        return f"<Lease {self.length} bytes at {self.offset}>"

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return bytes(self.view)

    @property
    def view(self) -> memoryview:
        """The bytes themselves; valid as long as this object is."""
        return self._place.memory.view[self.offset : self.offset + self.length]

    def part(self, start: int, end: int) -> "Lease":
        return Lease(self._place, self.offset + start, end - start)

    def beside(self, length: int) -> "Lease | None":
        """Return another place in the same arena, of `length` bytes; None if there is none."""
        return self._place.memory.take(length)

    def cut(self, length: int) -> None:
        """Free all but the first `length` bytes, at least 1: the rest, of which nothing was written."""
        self._place.cut(length)
        self.length = length


class Unshared:
    """Memory of a body that gave up its place in the arena; real memory is taken only where something was written."""

    def __init__(self, length: int, begins: memoryview) -> None:
        self.view = memoryview(mmap.mmap(-1, length))
        self.view[: len(begins)] = begins


Payload = bytes | Lease


class Arriving(Protocol):
    """The receiver of a body in the arena."""

    def give_up_place(self) -> None:
        """Release the unreceived part of the place, or the whole place: others need room."""


class Storage(Protocol):
    """Memory for large bodies."""

    def take(self, length: int, arriving: Arriving | None = None) -> Lease | None: ...

    def arrived(self, arriving: Arriving) -> None: ...


def gather(body: bytearray, storage: Storage | None) -> Payload:
    """Copy a body that arrived in many pieces, once: a large one into the arena, from where no frame has to copy it."""
    if storage is not None and len(body) >= SHARED_FROM and (stored := storage.take(len(body))) is not None:
        stored.view[:] = body
        return stored
    return bytes(body)


Take = Callable[[int], Lease | None]  # returns a place in the arena of so many bytes; None if there is none


def share_steps(value: bytes, take: Take | None) -> Steps[Payload]:
    """Copy a large value into the arena, in steps, and return it: a frame would copy it twice at once, 1.4 ms a MiB."""
    stored = take(len(value)) if take is not None and len(value) >= SHARED_FROM else None
    if stored is None:
        return value
    view, source = stored.view, memoryview(value)
    for at in range(0, len(value), COPIED_AT_ONCE):
        if at:
            yield
        end = min(at + COPIED_AT_ONCE, len(value))
        view[at:end] = source[at:end]
    return stored


class Gathered:
    """Bytes that are made piece by piece: each is written where it stays, in the arena.

    Without a place there, the pieces are joined at the end, which takes 1 ms for each MiB.

    Args:
        take: None for no arena.
        most: as many bytes as are expected; what comes beyond them is gathered elsewhere.

    Attributes:
        size: bytes so far.
    """

    def __init__(self, take: Take | None, most: int) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._most = most
        self._lease = take(most) if take is not None and most >= SHARED_FROM else None
        self._view = memoryview(b"") if self._lease is None else self._lease.view

    def add_piece(self, piece: bytes) -> None:
        at, self.size = self.size, self.size + len(piece)
        if self._lease is not None and self.size <= self._most:
            self._view[at : self.size] = piece
            return
        if self._lease is not None:
            self._pieces.append(bytes(self._view[:at]))
            self._lease, self._view = None, memoryview(b"")
        self._pieces.append(piece)

    def payload(self) -> Payload:
        """Return all of them."""
        if self._lease is None or self.size < SHARED_FROM:
            return b"".join(self._pieces) if self._lease is None else bytes(self._view[: self.size])
        if self.size < self._most:
            self._lease.cut(self.size)
        return self._lease


class Arena:
    """The shared memory.

    Args:
        size: bytes, a multiple of the page size.

    Attributes:
        soon: makes a call in a later turn of the event loop, for slow work; None to do all at once. Called
            on the thread that made the arena.
        descriptor: to be passed to workers; read-only.
        view: all of the memory.

    Raises:
        OSError: the system provides no such memory.
    """

    def __init__(self, size: int = SIZE) -> None:
        self.soon: Callable[[Callable[[], None]], None] | None = None
        self._thread = threading.get_ident()
        self.size = size
        self._places = Places(size)
        self._arriving: dict[Arriving, None] = {}  # in the order in which they began
        self._leaving: deque[tuple[int, int]] = deque()  # still to be returned to the system: (offset, end)
        file = os.memfd_create("tsctl-bodies", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            self._map = mmap.mmap(file, size)
            self.descriptor = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)  # not inherited, as Python opens
        finally:
            os.close(file)  # the map has one of its own
        self.view = memoryview(self._map)
        weakref.finalize(self, os.close, self.descriptor)

    def __repr__(self) -> str:
        return f"<Arena {self._places!r}>"

    @property
    def used(self) -> int:
        """The number of bytes in use."""
        return self._places.used

    def take(self, length: int, arriving: Arriving | None = None) -> Lease | None:
        """Return a place of `length` bytes, with arbitrary content; None if there is none.

        Args:
            arriving: asked to give the place up, once, when others need room; until `arrived`.
        """
        offset = self._places.take(length)
        for _ in range(min(_ASKED, len(self._arriving)) if offset is None else 0):
            first = next(iter(self._arriving))
            del self._arriving[first]
            first.give_up_place()
            offset = self._places.take(length)
            if offset is not None:
                break
        if offset is None:
            return None
        if arriving is not None:
            self._arriving[arriving] = None
        return Lease(Place(self, offset, length), offset, length)

    def arrived(self, arriving: Arriving) -> None:
        """Note that all of a body has arrived, or no more is expected."""
        self._arriving.pop(arriving, None)

    def free(self, offset: int, length: int, *, written: bool = True) -> None:
        end = offset + pages(length)
        above = min(max(offset, KEPT), end)
        if above == end or not written:
            self._places.free(offset, end - offset)
            return
        if offset < above:
            self._places.free(offset, above - offset)
        if self.soon is None or end - above <= GIVEN_AT_ONCE or threading.get_ident() != self._thread:
            self._map.madvise(mmap.MADV_REMOVE, above, end - above)
            self._places.free(above, end - above)
            return
        self._leaving.append((above, end))
        if len(self._leaving) == 1:
            self.soon(self._give_back)

    def _give_back(self) -> None:
        """Return a piece of a large place to the system; until then the piece is not available."""
        if not self._leaving:
            return  # asked for twice: the collector freed a place in the middle of this
        offset, end = self._leaving.popleft()
        piece = min(GIVEN_AT_ONCE, end - offset)
        self._map.madvise(mmap.MADV_REMOVE, offset, piece)
        self._places.free(offset, piece)
        if offset + piece < end:
            self._leaving.appendleft((offset + piece, end))
        if self._leaving and self.soon is not None:
            self.soon(self._give_back)


def open_arena(size: int = SIZE) -> Arena | None:
    """Return an arena, or None if the system has no such memory: then bodies go over the socket."""
    try:
        return Arena(size)
    except OSError:
        return None
