"""The origin of a version."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.archives.unpack import ArchiveMark


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a version.

    Attributes:
        url: as the registration named it.
        directory: the model's files.
        unpacked: the directory that was unpacked (`directory` or its parent), None if the version is served in place.
        document: `model-config.yaml`, empty if there is none.
        mark: size and time of the archive file before the unpacking, None if the version is served in place.
        listed: whether `--models` or `load_models` named the archive.
        python: the interpreter of the version's own environment, None for the daemon's.
    """

    url: str
    directory: Path
    unpacked: Path | None
    manifest: Manifest
    document: Mapping[str, Any]
    mark: ArchiveMark | None = None
    listed: bool = False
    python: Path | None = None
