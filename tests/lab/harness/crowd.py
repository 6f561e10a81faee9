"""Threads that ask or harm while a block runs, and are told to stop at its end."""

import random
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.lab.harness.ledger import Ledger


class Crowd:
    """Threads, each with a random sequence of its own; an exception in one would go unseen, so it is broken.

    Args:
        seed: of all sequences.

    Attributes:
        over: set when the threads are to stop.
    """

    def __init__(self, ledger: Ledger, seed: str) -> None:
        self.ledger = ledger
        self.over = threading.Event()
        self._seed = seed
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def add(self, work: Callable[..., None], *arguments: Any) -> None:
        """Add a thread that calls `work(*arguments, chance)`."""
        chance = random.Random(f"{self._seed} {type(self).__name__} {len(self._threads)}")
        self._threads.append(threading.Thread(target=self._guarded, args=(work, *arguments, chance)))

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001
            self.ledger.broken.append(f"{type(self).__name__}.{work.__name__.strip('_')}: {error!r}")
