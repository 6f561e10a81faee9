"""Open the archive of a registration: find or download, unpack, and hand over the model's directory.

A directory, and a single file such as `handler.py` or `model.pt`, are served in place: nothing is unpacked or copied.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives.digests import holds_its_files
from tsctl.daemon.models.archives.directories import Directories, Progress
from tsctl.daemon.models.archives.download import archive_of, is_remote
from tsctl.daemon.models.archives.unpack import ArchiveMark, check_digest, mark_of, model_root, open_steady
from tsctl.daemon.models.request import Registration
from tsctl.daemon.targets import is_bare


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
    """Opens archives; the unpacked files are in `directories`."""

    def __init__(self, config: Config, directories: Directories) -> None:
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
        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if is_in_place(path):
                if path.is_file() and is_remote(request.url):
                    raise InvalidModel(
                        f"{request.url} is a single file, and only archives are served from URLs; download it first."
                    )
                if request.sha256:
                    await asyncio.to_thread(_check_in_place, path, request.sha256)
                yield Contents(directory_in_place(path))
                return
            # Taken before the archive is read, so that a write meanwhile shows. A download is removed afterwards.
            mark = None if is_remote(request.url) else mark_of(path)
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
