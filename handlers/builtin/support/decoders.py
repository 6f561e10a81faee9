"""Decode the rows of a batch on all of a worker's threads, which otherwise wait until inference begins.

Pillow and torch release the GIL while they compute. Each decoding thread runs torch's operations on one thread: with
teams of their own, the threads would exceed the worker's share.

All threads together hold no more pixels than Pillow lets one image have. A file of 250 kB holds 88 million: decoded and
resized by two threads, eight rows of them took 2.4 GiB. What is kept of a row, its resized image, is small.

Pixels that malloc has kept are held, too: each thread has an arena of malloc's, where the tensor that is kept lies
above the freed image and keeps it from the kernel. Without a trim two threads took as much as two images.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from PIL import Image

from tsctl.handlers.own_process import give_memory_back

_changed = threading.Condition()
_held = 0  # pixels, by all threads of this process
_freed = 0  # pixels, since malloc was last trimmed


class Decoders:
    """Maps a function over rows, on torch's current number of threads."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 1

    def map(self, function: Callable[[Any], Any], rows: Sequence[Any]) -> Iterable[Any]:
        """Map in order, like the built-in `map`. One thread or one row runs on the caller's thread."""
        threads = torch.get_num_threads()
        if threads < 2 or len(rows) < 2:
            return map(function, rows)
        if self._pool is None or threads != self._threads:
            self._pool = self._start(threads)
        return self._pool.map(function, rows)

    def _start(self, threads: int) -> ThreadPoolExecutor:
        """Start the threads; the caller's own number of threads stays unchanged."""
        if self._pool is not None:
            self._pool.shutdown()
        self._threads = threads
        together = threading.Barrier(threads + 1)

        def begin() -> None:
            compute_alone()
            together.wait()

        pool = ThreadPoolExecutor(threads, "decode", initializer=begin)
        for _ in range(threads):
            pool.submit(int)
        together.wait()
        torch.set_num_threads(threads)  # threads that other code starts from now on inherit this number
        return pool


def compute_alone() -> None:
    """Let the calling thread run torch's operations on itself alone, from its first one on."""
    torch.get_num_threads()  # a thread's first query resets its number, so the query must precede the setting
    torch.set_num_threads(1)


@contextmanager
def admission(within: Callable[[int], None] | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that waits until so many pixels have room, or nobody holds any; they are held until the end.

    Args:
        within: is called with the pixels first; may raise.
    """
    held: list[int] = []

    def admit(pixels: int) -> None:
        if within is not None:
            within(pixels)
        _hold(pixels)
        held.append(pixels)

    try:
        yield admit
    finally:
        _leave(sum(held))


def _hold(pixels: int) -> None:
    global _held, _freed
    most = Image.MAX_IMAGE_PIXELS
    with _changed:
        while _held and most is not None and _held + pixels > most:
            _changed.wait()
        _held += pixels
        if most is not None and _freed and _held + _freed > most:
            give_memory_back()
            _freed = 0


def _leave(pixels: int) -> None:
    global _held, _freed
    if pixels:
        with _changed:
            _held -= pixels
            _freed += pixels
            _changed.notify_all()
