"""Memory that the daemon shares with its workers: large bodies are received into it, and read from it.

One arena for all of the daemon, since nobody knows whose worker will get a body while it arrives. It is
a memfd of a fixed size, and takes real memory only where something was written. A worker gets a
descriptor that only reads, so none can spoil another's request, and one that is killed harms nobody.

What does not fit goes the ordinary way, over the socket: the arena never fails.
"""

import mmap
import os
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Protocol

SHARED_FROM = 64 * 1024  # bytes; below, the socket costs less: eight bodies of 100 B 103 µs there and back
SIZE = 1024**3  # bytes of addresses, not of memory
PAGE = mmap.PAGESIZE
# Freed memory below this offset is kept, so that it need not be cleared and mapped anew: the lowest free place
# is taken first. What lies above is given back to the system.
KEPT = 32 * 1024**2
GIVEN_AT_ONCE = 4 * 1024**2  # bytes: 0.7 ms; 64 MiB took the event loop 10 ms (tests/benchmarks/callbacks.py)


class Allocator:
    """Places in a range of bytes, in whole pages; the lowest that is large enough is taken.

    No memory here, only numbers. A place costs time in proportion to the number of gaps before it.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self._starts = [0]  # of the gaps, rising; no two touch
        self._lengths = [size]

    def __repr__(self) -> str:
        return f"<Allocator {self.used}/{self.size} bytes used, {len(self._starts)} gaps>"

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """What is free: (offset, length), by offset."""
        return list(zip(self._starts, self._lengths, strict=True))

    def take(self, length: int) -> int | None:
        """Take at least `length` bytes; gives the offset, or None if no gap is large enough."""
        length = pages(length)
        index = next((index for index, there in enumerate(self._lengths) if there >= length), None)
        if index is None:
            return None
        there = self._lengths[index]
        offset = self._starts[index]
        if there == length:
            del self._starts[index], self._lengths[index]
        else:
            self._starts[index] += length
            self._lengths[index] -= length
        self.used += length
        return offset

    def free(self, offset: int, length: int) -> None:
        """Give back what was taken, with the same length."""
        length = pages(length)
        self.used -= length
        starts, lengths = self._starts, self._lengths
        index = bisect_left(starts, offset)
        if index < len(starts) and starts[index] == offset + length:
            length += lengths[index]
            del starts[index], lengths[index]
        if index and starts[index - 1] + lengths[index - 1] == offset:
            lengths[index - 1] += length
        else:
            starts.insert(index, offset)
            lengths.insert(index, length)


def pages(length: int) -> int:
    """Round up to whole pages, at least one."""
    return max(1, -(-length // PAGE)) * PAGE


class _Place:
    """One place in the arena; it is free again when nobody refers to it."""

    __slots__ = ("arena", "length", "offset")

    def __init__(self, arena: "Arena", offset: int, length: int) -> None:
        self.arena = arena
        self.offset = offset
        self.length = length

    def __del__(self) -> None:
        self.arena._free(self.offset, self.length)


class Stored:
    """Bytes in the arena. They stay there as long as somebody refers to them, or to a part of them."""

    __slots__ = ("_place", "length", "offset")

    def __init__(self, place: _Place, offset: int, length: int) -> None:
        self._place = place
        self.offset = offset
        self.length = length

    def __repr__(self) -> str:
        return f"<Stored {self.length} bytes at {self.offset}>"

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return bytes(self.view)

    @property
    def view(self) -> memoryview:
        """The bytes themselves; valid as long as this object is."""
        return self._place.arena.view[self.offset : self.offset + self.length]

    def part(self, start: int, end: int) -> "Stored":
        return Stored(self._place, self.offset + start, end - start)

    def beside(self, length: int) -> "Stored | None":
        """Take another place in the same arena, of `length` bytes; None if there is none."""
        return self._place.arena.take(length)


Payload = bytes | Stored


class Storage(Protocol):
    """Where a large body may be received."""

    def take(self, length: int) -> Stored | None: ...


def gather(body: bytearray, storage: Storage | None) -> Payload:
    """Copy a body that came in many pieces, once: a large one into the arena, from where no frame has to copy it."""
    if storage is not None and len(body) >= SHARED_FROM and (stored := storage.take(len(body))) is not None:
        stored.view[:] = body
        return stored
    return bytes(body)


class Arena:
    """The memory.

    Args:
        size: bytes, a multiple of the page size.

    Attributes:
        soon: makes a call in a later turn of the event loop, for what would take long; None to do all at once.
        descriptor: to be given to workers; it can only be read from.
        view: all of it.

    Raises:
        OSError: the system gives no such memory.
    """

    def __init__(self, size: int = SIZE) -> None:
        self.soon: Callable[[Callable[[], None]], None] | None = None
        self._allocator = Allocator(size)
        self._leaving: deque[tuple[int, int]] = deque()  # what is still to be given back: (offset, end)
        file = os.memfd_create("tsctl-bodies", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            self._map = mmap.mmap(file, size)
            self.descriptor = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(file)  # the map has one of its own
        self.view = memoryview(self._map)
        weakref.finalize(self, os.close, self.descriptor)

    def __repr__(self) -> str:
        return f"<Arena {self._allocator!r}>"

    @property
    def size(self) -> int:
        return self._allocator.size

    @property
    def used(self) -> int:
        """Bytes that are in use."""
        return self._allocator.used

    def take(self, length: int) -> Stored | None:
        """Make room for `length` bytes, whatever is in them now; None if there is none."""
        offset = self._allocator.take(length)
        return None if offset is None else Stored(_Place(self, offset, length), offset, length)

    def _free(self, offset: int, length: int) -> None:
        end = offset + pages(length)
        above = min(max(offset, KEPT), end)
        if self.soon is not None and end - above > GIVEN_AT_ONCE:
            if offset < above:
                self._allocator.free(offset, above - offset)
            self._leaving.append((above, end))
            if len(self._leaving) == 1:
                self.soon(self._give_back)
            return
        self._allocator.free(offset, length)
        if above < end:
            self._map.madvise(mmap.MADV_REMOVE, above, end - above)

    def _give_back(self) -> None:
        """Give a piece of a large place back to the system; until then nobody else gets it."""
        offset, end = self._leaving.popleft()
        piece = min(GIVEN_AT_ONCE, end - offset)
        self._map.madvise(mmap.MADV_REMOVE, offset, piece)
        self._allocator.free(offset, piece)
        if offset + piece < end:
            self._leaving.appendleft((offset + piece, end))
        if self._leaving and self.soon is not None:
            self.soon(self._give_back)


def open_arena(size: int = SIZE) -> Arena | None:
    """Make an arena, if the system has such memory; without one, bodies go over the socket."""
    try:
        return Arena(size)
    except OSError:
        return None
