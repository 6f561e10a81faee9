"""Open the archive of a registration: find or download, unpack, and hand over the model's directory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from daemon.config.config import Config
from daemon.models.archives.directories import Directories, Progress
from daemon.models.archives.download import archive_of, is_remote
from daemon.models.archives.unpack import ArchiveMark, mark_of, model_root
from daemon.models.request import Registration


class Contents(NamedTuple):
    """The directory of a model's files; `unpacked` and `mark` as in `Source`."""

    directory: Path
    unpacked: Path | None = None
    mark: ArchiveMark | None = None


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
        report = partial(progress, "downloading")
        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if path.is_dir():
                yield Contents(model_root(path))
                return
            # Taken before the archive is read, so that a write meanwhile shows. A download is removed afterwards.
            mark = None if is_remote(request.url) else mark_of(path)
            unpacked = await self._directories.unpack(path, progress)
            try:
                yield Contents(model_root(unpacked), unpacked, mark)
            except BaseException:
                self._directories.release(unpacked)
                raise
