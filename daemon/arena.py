"""Memory that the daemon shares with its workers: large bodies are received into it, and read from it.

One arena for all of the daemon, since nobody knows whose worker will get a body while it arrives. It is
a memfd of a fixed size, and takes real memory only where something was written. A worker gets a
descriptor that only reads, so none can spoil another's request, and one that is killed harms nobody.

What does not fit goes the ordinary way, over the socket: the arena never fails.

A body that is announced gets a place for all of it, so that it is received where it stays. What of it has not come is
the first thing to go: where a place is wanted and none is left, bodies that are still arriving give up theirs, the one
that began first before all others, and are received elsewhere.
"""

import mmap
import os
import weakref
from bisect import bisect_left
from typing import Protocol

SHARED_FROM = 64 * 1024  # bytes; below, the socket costs less: eight bodies of 100 B 103 µs there and back
SIZE = 1024**3  # bytes of addresses, not of memory
PAGE = mmap.PAGESIZE
# Freed memory below this offset is kept, so that it need not be cleared and mapped anew: the lowest free place
# is taken first. What lies above is given back to the system.
KEPT = 32 * 1024**2
_ASKED = 64  # bodies that are asked to give up their places for one, at most


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

    def cut(self, length: int) -> None:
        kept, had = pages(length), pages(self.length)
        if kept < had:
            self.arena._free(self.offset + kept, had - kept)
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

    def cut(self, length: int) -> None:
        """Give back all but the first `length` bytes, at least 1; only while nobody else refers to the place."""
        self._place.cut(length)
        self.length = length


class Unshared:
    """Memory of a body that gave up its place in the arena; it, too, takes room only where something was written."""

    def __init__(self, length: int, begins: memoryview) -> None:
        self.view = memoryview(mmap.mmap(-1, length))
        self.view[: len(begins)] = begins

    def __bytes__(self) -> bytes:
        return bytes(self.view)


Payload = bytes | Stored


class Arriving(Protocol):
    """Whoever receives a body into its place."""

    def give_up_place(self) -> None:
        """Give back what has not come of it, or all: others have come."""


class Storage(Protocol):
    """Where a large body may be received."""

    def take(self, length: int, arriving: Arriving | None = None) -> Stored | None: ...

    def arrived(self, arriving: Arriving) -> None: ...


class Arena:
    """The memory.

    Args:
        size: bytes, a multiple of the page size.

    Attributes:
        descriptor: to be given to workers; it can only be read from.
        view: all of it.

    Raises:
        OSError: the system gives no such memory.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._allocator = Allocator(size)
        self._arriving: dict[Arriving, None] = {}  # in the order in which they began
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

    def take(self, length: int, arriving: Arriving | None = None) -> Stored | None:
        """Make room for `length` bytes, whatever is in them now; None if there is none.

        Args:
            arriving: asked to give the place up, once, when others want one; until `arrived`.
        """
        offset = self._allocator.take(length)
        for _ in range(min(_ASKED, len(self._arriving)) if offset is None else 0):
            first = next(iter(self._arriving))
            del self._arriving[first]
            first.give_up_place()
            offset = self._allocator.take(length)
            if offset is not None:
                break
        if offset is None:
            return None
        if arriving is not None:
            self._arriving[arriving] = None
        return Stored(_Place(self, offset, length), offset, length)

    def arrived(self, arriving: Arriving) -> None:
        """All of its body has come, or no more is waited for."""
        self._arriving.pop(arriving, None)

    def _free(self, offset: int, length: int) -> None:
        self._allocator.free(offset, length)
        above = max(offset, KEPT)
        end = offset + pages(length)
        if above < end:
            self._map.madvise(mmap.MADV_REMOVE, above, end - above)


def open_arena(size: int = SIZE) -> Arena | None:
    """Make an arena, if the system has such memory; without one, bodies go over the socket."""
    try:
        return Arena(size)
    except OSError:
        return None
