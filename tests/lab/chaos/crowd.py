"""Threads that run while a block does, and are told to stop at its end."""

import threading
from typing import Self


class Crowd:
    """What a class of such threads has in common: it makes `_threads`, and each looks at `_over`."""

    _threads: list[threading.Thread]

    def __init__(self) -> None:
        self._over = threading.Event()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
