"""A registration: its request, of a client, a list of models to load or the snapshot; the origin of its version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.archives.unpack import ArchiveMark
from tsctl.daemon.models.settings import Overrides


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registration. The snapshot keeps it, so a new field needs a default.

    Attributes:
        url: a name in the model store, an absolute path, or a URL that the operator allows.
        model_version: the version that the archive must contain; None for any.
        sha256: the SHA-256 that the archive must have, as 64 hexadecimal digits; empty for any.
        local_paths: whether a path outside the store is allowed.
        synchronous: whether to wait until every worker is ready.
        held: an operator unloaded the version: no request loads it.
        ephemeral: never written to the snapshot, so that a restart does not serve the version; an upgrade keeps it.
        owner: a random token of the program that registers; empty for none. See registering/ownership.py.
        owner_pid: the process whose end unregisters the owner's versions; 0 for none. See there, too.
    """

    url: str
    model_name: str | None = None
    model_version: str | None = None
    sha256: str = ""
    handler: str | None = None
    runtime: str | None = None
    overrides: Overrides = field(default_factory=Overrides)
    synchronous: bool = True
    local_paths: bool = False
    held: bool = False
    ephemeral: bool = False
    owner: str = ""
    owner_pid: int = 0
