"""The directories of unpacked archives: who uses them, and when one may go.

One directory may serve several models, since it is named by its content. It goes when nobody
uses it and the snapshot on the disk does not refer to it.
"""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from daemon.models.archive import Limits, unpack

_PROGRESS_EVERY = 0.05  # seconds

Progress = Callable[[str, int, int], None]  # stage ("unpacking", "loading"), done, total


class Directories:
    """The unpacked archives of one state directory.

    Args:
        kept: whether the next run will want a directory, though nobody uses it now.
    """

    def __init__(self, folder: Path, limits: Limits, kept: Callable[[Path], bool]) -> None:
        self._folder = folder
        self._limits = limits
        self._kept = kept
        self._users: Counter[Path] = Counter()  # registrations and models

    def named(self, name: str) -> Path:
        return self._folder / name

    def clean(self) -> None:
        """Remove what nothing refers to: what a crash left behind."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for directory in self._folder.iterdir():
            if directory.is_symlink():  # nobody here makes one, and what it leads to is not ours
                directory.unlink()
            else:
                self.remove_unused(directory)

    def remove_unused(self, directory: Path) -> None:
        if not self._users[directory] and not self._kept(directory):
            shutil.rmtree(directory, ignore_errors=True)

    def use(self, directory: Path) -> None:
        """Keep a directory until it is released as often as it was used."""
        self._users[directory] += 1

    def release(self, directory: Path) -> None:
        self._users[directory] -= 1
        if self._users[directory] <= 0:
            del self._users[directory]
            self.remove_unused(directory)

    async def unpack(self, archive: Path, progress: Progress) -> Path:
        """Unpack an archive, unless that was done before, and use its directory.

        Raises:
            InvalidModel: it cannot be unpacked.
        """
        loop = asyncio.get_running_loop()
        reported = 0.0

        def report(done: int, total: int) -> None:
            nonlocal reported
            now = time.monotonic()
            if now - reported >= _PROGRESS_EVERY:
                reported = now
                loop.call_soon_threadsafe(progress, "unpacking", done, total)

        while True:
            unpacked = await asyncio.to_thread(unpack, archive, self._folder, self._limits, report)
            if unpacked.is_dir():
                break  # else a registration of the same archive failed meanwhile, and removed it
        self.use(unpacked)
        return unpacked
