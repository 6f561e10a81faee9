"""The directories of unpacked archives, with reference counts.

A directory is named by its content, so several models may share one. A directory is removed when neither a model
nor the snapshot on the disk refers to it.
"""

import asyncio
import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tsctl.daemon.models.archives.digests import sums_of
from tsctl.daemon.models.archives.unpack import Limits, unpack

_PROGRESS_EVERY = 0.05  # seconds
DIGITS = 64  # of a SHA-256

Progress = Callable[[str, int, int], None]  # stage ("unpacking", "loading"), done, total


class Directories:
    """The unpacked archives of one state directory.

    Args:
        kept: whether the snapshot refers to a directory, even if no model uses it now.
    """

    def __init__(self, folder: Path, limits: Limits, kept: Callable[[Path], bool]) -> None:
        self._folder = folder
        self._limits = limits
        self._kept = kept
        self._users: Counter[Path] = Counter()  # registrations and models
        self._put_off: set[Path] | None = None  # to be looked at when no other daemon uses them

    def named(self, name: str) -> Path:
        return self._folder / name

    def clean(self) -> None:
        """Remove directories that nothing refers to: leftovers of a crash."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for directory in self._folder.iterdir():
            if directory.is_symlink():  # the daemon makes none, and the target is not the daemon's
                directory.unlink()
            else:
                self.remove_unused(directory)
        for sums in sums_of(self._folder / "any").parent.glob("*"):
            if not self.named(sums.name).is_dir():
                sums.unlink(missing_ok=True)

    def share(self) -> None:
        """Remove nothing for now: a daemon that is being replaced may still start workers from the directories.

        What it has put off itself is looked at, too, when it has ended.
        """
        self._put_off = set(self._folder.iterdir()) if self._folder.is_dir() else set()

    def own(self) -> None:
        """Remove what has become unused since `share`: the other daemon has ended."""
        waiting, self._put_off = self._put_off or set(), None
        for directory in waiting:
            self.remove_unused(directory)

    def remove_unused(self, directory: Path) -> None:
        if self._put_off is not None:
            self._put_off.add(directory)
        elif not self._users[directory] and not self._kept(directory):
            shutil.rmtree(directory, ignore_errors=True)
            with contextlib.suppress(OSError):
                sums_of(directory).unlink(missing_ok=True)

    def use(self, directory: Path) -> None:
        """Keep a directory until `release` was called as often as `use`."""
        self._users[directory] += 1

    def release(self, directory: Path) -> None:
        self._users[directory] -= 1
        if self._users[directory] <= 0:
            del self._users[directory]
            self.remove_unused(directory)

    def kept(self, digest: str) -> Path | None:
        """Return the directory that was unpacked of the archive with a SHA-256; None if there is none."""
        directory = self._folder / digest
        return directory if len(digest) == DIGITS and directory.is_dir() else None

    async def unpack(self, archive: Path, progress: Progress, pinned: str = "") -> Path:
        """Unpack an archive, unless that was done before, and use its directory.

        Args:
            pinned: the SHA-256 that the archive must have; empty for any.

        Raises:
            InvalidModel: the archive is not the pinned one, damaged, too large or unsafe.
            NotUnpacked: this machine cannot take the archive, e.g. because the disk is full.
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
            unpacked = await asyncio.to_thread(unpack, archive, self._folder, self._limits, report, pinned)
            # Python 3.14 does not suspend where the thread has ended already: let its reports arrive first.
            await asyncio.sleep(0)
            if unpacked.is_dir():
                break  # else a registration of the same archive failed meanwhile, and removed the directory
        self.use(unpacked)
        return unpacked
