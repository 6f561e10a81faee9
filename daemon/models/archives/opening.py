"""Open the archive of a registration: find or download, unpack, and hand over the model's directory.

A directory, and a single file such as `handler.py` or `model.pt`, are served in place: nothing is unpacked or copied.

An unpacked directory is named by its content, so several models may share one. It is removed when neither a model nor
the snapshot on the disk refers to it: renamed at once, to STATE/removed-…, and a thread removes its files.
"""

import asyncio
import contextlib
import shutil
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import InvalidModel, NotStored
from tsctl.daemon.models.archives.digests import holds_its_files, sums_of
from tsctl.daemon.models.archives.download import Fetch, archive_of, throttled
from tsctl.daemon.models.archives.unpack import (
    ArchiveMark,
    Limits,
    check_digest,
    mark_of,
    model_root,
    open_steady,
    unpack,
)
from tsctl.daemon.models.request import Registration
from tsctl.daemon.targets import is_bare, is_url

DIGITS = 64  # of a SHA-256

Progress = Callable[[str, int, int], None]  # stage ("unpacking", "loading"), done, total

REMOVED = "removed-"  # begins the name of a directory while a thread removes it


class Directories:
    """The unpacked archives of one state directory.

    Args:
        kept: whether the snapshot refers to a directory, even if no model uses it now.
    """

    def __init__(self, folder: Path, limits: Limits, kept: Callable[[Path], bool]) -> None:
        self._folder = folder
        self._removals: set[asyncio.Future[None]] = set()
        self._limits = limits
        self._kept = kept
        self._users: Counter[Path] = Counter()  # registrations and models
        self._put_off: set[Path] | None = None  # to be looked at when no other daemon uses them

    def named(self, name: str) -> Path:
        return self._folder / name

    def clean(self) -> None:
        """Remove directories that nothing refers to: leftovers of a crash."""
        for left in self._folder.parent.glob(f"{REMOVED}*"):
            shutil.rmtree(left, ignore_errors=True)
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
            self._remove(directory)
            with contextlib.suppress(OSError):
                sums_of(directory).unlink(missing_ok=True)

    def _remove(self, directory: Path) -> None:
        """Rename a directory, and remove it in a thread: 100 000 files, or 20 GB, take seconds."""
        aside = self._folder.with_name(f"{REMOVED}{uuid.uuid4().hex}")
        try:
            directory.rename(aside)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            return
        remove = partial(shutil.rmtree, aside, ignore_errors=True)
        try:
            removal = asyncio.get_running_loop().run_in_executor(None, remove)
        except RuntimeError:  # no loop runs, or it is about to end
            remove()
        else:
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)

    async def removed(self) -> None:
        """Wait until the disk is free of what was removed."""
        if self._removals:
            await asyncio.wait(self._removals)

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
            NotStored: this machine cannot take the archive, e.g. because the disk is full.
        """
        loop = asyncio.get_running_loop()
        report = throttled(partial(loop.call_soon_threadsafe, partial(progress, "unpacking")))
        while True:
            removing = bool(self._removals)
            try:
                unpacked = await asyncio.to_thread(unpack, archive, self._folder, self._limits, report, pinned)
            except NotStored:
                if not removing:
                    raise
                await self.removed()  # the disk may have been full of that
                continue
            # Python 3.14 does not suspend where the thread has ended already: let its reports arrive first.
            await asyncio.sleep(0)
            if unpacked.is_dir():
                break  # else a registration of the same archive failed meanwhile, and removed the directory
        self.use(unpacked)
        return unpacked


class Contents(NamedTuple):
    """The directory of a model's files; `unpacked` and `mark` as in `Source`."""

    directory: Path
    unpacked: Path | None = None
    mark: ArchiveMark | None = None


def is_in_place(path: Path) -> bool:
    """Return whether a path is served in place: a directory, or a file that is no archive."""
    return path.is_dir() or is_bare(path.name)


def directory_in_place(path: Path) -> Path:
    """Return the directory of a model that is served in place."""
    return model_root(path) if path.is_dir() else path.parent


class Archives:
    """Opens archives; the unpacked files are in `directories`.

    Attributes:
        fetchers: schemes of URLs → what downloads from there, beside HTTP.
    """

    def __init__(self, config: Config, directories: Directories) -> None:
        self.fetchers: dict[str, Fetch] = {}
        self._config = config
        self._directories = directories

    @asynccontextmanager
    async def open(self, request: Registration, progress: Progress) -> AsyncIterator[Contents]:
        """Open an archive for the block, which makes a model of it; if the block fails, the unpacked files go.

        Raises:
            DaemonError: the archive cannot be found, downloaded or unpacked.
        """
        kept = self._directories.kept(request.sha256)
        if kept is not None and request.local_paths:  # pinned, and here already: the archive itself may be gone
            self._directories.use(kept)
            with self._released_on_error(kept):
                as_pinned = await asyncio.to_thread(holds_its_files, kept)
                if as_pinned:
                    yield Contents(model_root(kept), kept)
            if as_pinned:
                return
            self._directories.release(kept)
        report = partial(progress, "downloading")
        local = request.local_paths
        if is_url(request.url):  # a download that finds the disk full of these would have to begin again
            await self._directories.removed()
        async with archive_of(request.url, self._config, self.fetchers, report, local_paths=local) as path:
            if is_in_place(path):
                if path.is_file() and is_url(request.url):
                    raise InvalidModel(
                        f"{request.url} is a single file, and only archives are served from URLs; download it first."
                    )
                if request.sha256:
                    await asyncio.to_thread(_check_in_place, path, request.sha256)
                yield Contents(directory_in_place(path))
                return
            # Taken before the archive is read, so that a write meanwhile shows. A download is removed afterwards.
            mark = None if is_url(request.url) else mark_of(path)
            unpacked = await self._directories.unpack(path, progress, request.sha256)
            with self._released_on_error(unpacked):
                yield Contents(model_root(unpacked), unpacked, mark)

    @contextmanager
    def _released_on_error(self, unpacked: Path) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._directories.release(unpacked)
            raise


def _check_in_place(path: Path, pinned: str) -> None:
    """Check the SHA-256 of a file that is served in place. Blocks.

    Raises:
        InvalidModel: the file has another SHA-256, or the path is a directory, which has none.
    """
    if path.is_dir():
        raise InvalidModel(
            f"`{path}` is a directory, which has no SHA-256: pack it with `tsctl archive`, or pin nothing."
        )
    with open_steady(path) as file:
        check_digest(path.name, file.sha256, pinned)
