"""The gate that every change passes: closed while the daemon is being replaced.

Two daemons that change one state directory would undo each other's changes. Therefore no change begins
while the successor loads, and every change in progress is finished, and on the disk, before the successor starts.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from tsctl.daemon.core.errors import Upgrading


class Gate:
    """Admits changes until closed."""

    def __init__(self) -> None:
        self._closed = False
        self._inside = 0
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __repr__(self) -> str:
        return f"<Gate {'closed' if self._closed else 'open'}, {self._inside} inside>"

    @property
    def closed(self) -> bool:
        """Whether the daemon is being replaced."""
        return self._closed

    @contextmanager
    def change(self) -> Iterator[None]:
        """Count a change as in progress while the block runs.

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
        """Reject new changes; changes in progress finish."""
        self._closed = True

    async def emptied(self) -> None:
        """Wait until no change is in progress."""
        await self._emptied.wait()
