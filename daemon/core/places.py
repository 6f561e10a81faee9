"""Allocation of places in a range of bytes: offsets only, no memory."""

import mmap
import threading
from bisect import bisect_left
from collections import deque

PAGE = mmap.PAGESIZE


def pages(length: int) -> int:
    """Round up to whole pages, at least one."""
    return max(1, -(-length // PAGE)) * PAGE


class Allocator:
    """Allocates places in a range of bytes, in whole pages; the lowest gap that is large enough is used (first fit).

    A place costs time in proportion to the number of gaps before it.
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
        """The free ranges: (offset, length), by offset."""
        return list(zip(self._starts, self._lengths, strict=True))

    def take(self, length: int) -> int | None:
        """Take at least `length` bytes. Return the offset, or None if no gap is large enough."""
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
        """Free a place, or whole pages of one."""
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


class Places:
    """An allocator that may be interrupted, or called on another thread, while working.

    The garbage collector frees places, too: on any thread, and in the middle of anything, `take` included. An allocator
    alone then gives one place to two requests.
    """

    def __init__(self, size: int) -> None:
        self._allocator = Allocator(size)
        # Never waited for: the call that holds the lock may be the one that the collector interrupted.
        self._lock = threading.Lock()
        self._freed: deque[tuple[int, int]] = deque()  # places that still have to be freed

    def __repr__(self) -> str:
        return repr(self._allocator)

    @property
    def size(self) -> int:
        return self._allocator.size

    @property
    def used(self) -> int:
        """The number of bytes in use."""
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
        """Free a place, or whole pages of one: at once, or when the call that this interrupts is done."""
        self._freed.append((offset, length))
        self._free_all()

    def _free_all(self) -> None:
        while self._freed and self._lock.acquire(blocking=False):
            try:
                while self._freed:
                    self._allocator.free(*self._freed.popleft())
            finally:
                self._lock.release()
