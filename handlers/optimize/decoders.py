"""Decode the rows of a batch on all of a worker's threads, which otherwise wait until the model begins.

Pillow and torch leave the GIL while they work. Each decoding thread runs torch's own operations alone:
with teams of their own, threads would be more than the worker has.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch


class Decoders:
    """Maps a function over rows, on as many threads as torch uses when it is asked."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 1

    def map(self, function: Callable[[Any], Any], rows: Sequence[Any]) -> Iterable[Any]:
        """As the built-in `map`, in order. Few threads or few rows stay on the caller's."""
        threads = torch.get_num_threads()
        if threads < 2 or len(rows) < 2:
            return map(function, rows)
        if self._pool is None or threads != self._threads:
            self._pool = self._start(threads)
        return self._pool.map(function, rows)

    def _start(self, threads: int) -> ThreadPoolExecutor:
        """Start the threads; the caller's own number of threads stays as it is."""
        if self._pool is not None:
            self._pool.shutdown()
        self._threads = threads
        together = threading.Barrier(threads + 1)

        def begin() -> None:
            torch.get_num_threads()  # a thread's first question sets its number anew, so it must come before
            torch.set_num_threads(1)
            together.wait()

        pool = ThreadPoolExecutor(threads, "decode", initializer=begin)
        for _ in range(threads):
            pool.submit(int)
        together.wait()
        torch.set_num_threads(threads)  # threads that somebody else starts from now on get this number, too
        return pool
