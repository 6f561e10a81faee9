"""The gate that changes go through: closed while the daemon is being replaced.

Two daemons that change one state directory would each undo what the other has done. So nothing is
begun while a new one loads, and what had been begun is finished, and on the disk, before it starts.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from daemon.errors import Upgrading


class Gate:
    """Lets changes in until it is closed."""

    def __init__(self) -> None:
        self._closed = False
        self._inside = 0
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __repr__(self) -> str:
        return f"<Gate {'closed' if self._closed else 'open'}, {self._inside} inside>"

    @contextmanager
    def change(self) -> Iterator[None]:
        """Be inside while the block runs.

        Raises:
            Upgrading: the gate is closed.
        """
        if self._closed:
            raise Upgrading
        self._inside += 1
        self._emptied.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._emptied.set()

    def open(self) -> None:
        self._closed = False

    def close(self) -> None:
        """Let nobody in; those inside finish."""
        self._closed = True

    async def emptied(self) -> None:
        """Wait until nobody is inside."""
        await self._emptied.wait()
