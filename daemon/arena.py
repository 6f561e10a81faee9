"""Memory that the daemon shares with its workers: large bodies are received into it, and read from it.

One arena for all of the daemon, since nobody knows whose worker will get a body while it arrives. It is
a memfd of a fixed size, and takes real memory only where something was written. A worker gets a
descriptor that only reads, so none can spoil another's request, and one that is killed harms nobody.

What does not fit goes the ordinary way, over the socket: the arena never fails.

Who may still read or write a place owns it, and it is free again when nobody does. Each owner has a lease of its own,
which is a reference to a `Stored`:

    the connection   while the body is being received           http/receiver.py
    the job          until it ends                              job.py
    each worker      until it has said that the batch is done,  workers/hand.py
    that was sent    an overdue one too, or its process has
    the job          ended, which a pidfd says: not a kill, not
                     the end of a socket

A worker reads a place when it begins the batch, and perhaps again later (isolation): so its lease does not depend on
what becomes of the job meanwhile.
"""

import mmap
import os
import threading
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


class Places:
    """An allocator that may be interrupted, or called on another thread, while it works.

    The garbage collector ends leases too: on any thread, and in the middle of anything, `take` included. An allocator
    alone then gives one place to two requests.

    Args:
        leaving: called with each place before others may have it.
    """

    def __init__(self, size: int, leaving: Callable[[int, int], None]) -> None:
        self._allocator = Allocator(size)
        self._leaving = leaving
        # Never waited for: the call that has it may be the one that the collector interrupted.
        self._lock = threading.Lock()
        self._freed: deque[tuple[int, int]] = deque()  # places that the allocator is still to be told of

    def __repr__(self) -> str:
        return repr(self._allocator)

    @property
    def size(self) -> int:
        return self._allocator.size

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        return self._allocator.used

    def take(self, length: int) -> int | None:
        """Take at least `length` bytes.

        Returns:
            The offset; None if no gap is large enough, or another thread is freeing a place at this moment.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            offset = self._allocator.take(length)
        finally:
            self._lock.release()
        if self._freed:
            self._free_all()
        return offset

    def free(self, offset: int, length: int) -> None:
        """Give back what was taken, with the same length; at once, or when the call that this interrupts is done."""
        self._freed.append((offset, length))
        self._free_all()

    def _free_all(self) -> None:
        while self._freed and self._lock.acquire(blocking=False):
            try:
                while self._freed:
                    offset, length = self._freed.popleft()
                    self._leaving(offset, length)
                    self._allocator.free(offset, length)
            finally:
                self._lock.release()


class Memory(Protocol):
    """What places are in.

    Attributes:
        view: all of it.
    """

    @property
    def view(self) -> memoryview: ...

    def free(self, offset: int, length: int) -> None:
        """Take a place back: its last lease has ended. May be called at any time, on any thread."""


class Place:
    """One place in the memory; its references are its leases, and it is free when the last one ends."""

    __slots__ = ("length", "memory", "offset")

    def __init__(self, memory: Memory, offset: int, length: int) -> None:
        self.memory = memory
        self.offset = offset
        self.length = length

    def __del__(self) -> None:
        self.memory.free(self.offset, self.length)


class Stored:
    """A lease of bytes in the arena: they stay there as long as anybody has one of them, or of another part."""

    __slots__ = ("_place", "length", "offset")

    def __init__(self, place: Place, offset: int, length: int) -> None:
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
        return self._place.memory.view[self.offset : self.offset + self.length]

    def part(self, start: int, end: int) -> "Stored":
        return Stored(self._place, self.offset + start, end - start)


Payload = bytes | Stored


class Storage(Protocol):
    """Where a large body may be received."""

    def take(self, length: int) -> Stored | None: ...


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
        self._places = Places(size, self._give_back)
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
        return f"<Arena {self._places!r}>"

    @property
    def size(self) -> int:
        return self._places.size

    @property
    def used(self) -> int:
        """Bytes that are in use."""
        return self._places.used

    def take(self, length: int) -> Stored | None:
        """Make room for `length` bytes, whatever is in them now; None if there is none."""
        offset = self._places.take(length)
        return None if offset is None else Stored(Place(self, offset, length), offset, length)

    def free(self, offset: int, length: int) -> None:
        self._places.free(offset, length)

    def _give_back(self, offset: int, length: int) -> None:
        """Give memory that is not kept back to the system."""
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
