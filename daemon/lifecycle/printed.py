"""`start.log`, bounded while the daemon runs: the output beside the daemon's own log, such as a crash's last words.

The file is open as stdout and stderr, also of libraries in C, and renaming would not end that. So a file that has
become long is copied to `start.log.1` and emptied.
"""

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from tsctl.daemon.core.clock import Clock, Ticker

MOST_BYTES = 1_000_000  # in the file; and of what is kept of it, the end
LOOK_EVERY = 10.0  # seconds
NAME = "start.log"  # a file of another name is a user's own


class PrintedLog:
    """Keeps the file behind a descriptor short: `start.log`, and no terminal, pipe or file of a user's own."""

    def __init__(self, clock: Clock, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._ticker = Ticker(clock, LOOK_EVERY, self._look)

    def begin(self) -> None:
        """Look now, and every `LOOK_EVERY` seconds."""
        self._ticker.begin()
        self._look()

    def close(self) -> None:
        """Look no more."""
        self._ticker.close()

    def _look(self) -> None:
        with contextlib.suppress(OSError):  # such as a full disk
            self.shorten()

    def shorten(self) -> None:
        """Empty the file if it is long, and keep its end beside it.

        Raises:
            OSError: the end cannot be kept; the file was emptied all the same.
        """
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size <= MOST_BYTES:
            return
        here = f"/proc/self/fd/{self._descriptor}"
        path = Path(os.readlink(here))
        if path.name != NAME:
            return
        # Else the next line would be written behind a hole of the old size.
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, fcntl.fcntl(self._descriptor, fcntl.F_GETFL) | os.O_APPEND)
        try:
            with open(here, "rb") as file:
                file.seek(status.st_size - MOST_BYTES)
                end = file.read(MOST_BYTES)
            kept = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(kept, "wb") as beside:
                beside.write(end)
        finally:
            os.ftruncate(self._descriptor, 0)
