"""The snapshot file of the registered versions: what it holds (snapshot_file.py has its text), reading, atomic writes.

    write `.snapshot-…` ──▶ fsync it ──▶ rename it to `snapshot.json` ──▶ fsync the directory

A crash between any two steps leaves the old snapshot or the new one, never half of one. The file holds only the
values that a registration asked for: those of the archive's `model-config.yaml`, of the `models` block and of the
daemon's defaults are read again when the model is restored.

Everything here blocks; run `write_snapshot` in a thread.
"""

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tsctl.daemon.marfile import NAME, VERSION
from tsctl.daemon.models.archives.unpack import ArchiveMark
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.routing.route import Route, is_valid
from tsctl.daemon.models.settings import ROWS, Overrides
from tsctl.handlers.wire import Declared

FORMAT = 2
_DRAFT = ".snapshot-"
_PLAIN = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,254}")  # one path component, never `..`


class BrokenSnapshot(Exception):
    """A snapshot file cannot be read; the message names the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEntry:
    """One registered version.

    Attributes:
        request: the registration, with the changes that were requested since (`set`, `scale`).
        default: whether this is the default version of its model.
        chosen: whether a client chose the default version.
        unpacked: the name of the directory among the unpacked archives; None if the version is served in place.
        archive: the archive's mark; None if the version is served in place.
        listed: whether `--models` or `load_models` named the archive.
        declared: the inputs of a typed or built-in handler; None for any other, and if a later tsctl wrote another.
        notes: the worker's sentences for the model's author.
    """

    name: str
    version: str
    request: Registration
    default: bool = False
    chosen: bool = False
    unpacked: str | None = None
    archive: ArchiveMark | None = None
    listed: bool = False
    declared: Declared | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierModel:
    """All versions of a model before its latest change, which can be brought back, see snapshot_file.py.

    Attributes:
        name: of the model.
        change: the token of the change, which several commands may have in common; empty for none.
        time: of the change, seconds since the epoch.
        versions: as they were registered.
        route: of the model; None without one.
    """

    name: str
    change: str
    time: float
    versions: tuple[SnapshotEntry, ...]
    route: Route | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every registered version; those of one model in the order of their registration.

    Attributes:
        version: of the file's format.
        models: the registered versions.
        earlier: models before their latest changes, those changed last at the end.
        routes: model → route.
        extensions: name → what its service keeps (daemon/extension.py).
    """

    version: int = FORMAT
    models: tuple[SnapshotEntry, ...] = ()
    earlier: tuple[EarlierModel, ...] = ()
    routes: dict[str, Route] = field(default_factory=dict)
    extensions: dict[str, Any] = field(default_factory=dict)

    @property
    def directories(self) -> frozenset[str]:
        """Return the names of the unpacked directories to keep: earlier ones only of models that are registered."""
        names = {entry.name for entry in self.models}
        earlier = [entry for model in self.earlier if model.name in names for entry in model.versions]
        return frozenset(entry.unpacked for entry in (*self.models, *earlier) if entry.unpacked is not None)


def decode_snapshot(content: bytes) -> Snapshot:
    """Decode a file's content.

    Raises:
        BrokenSnapshot: the content is no snapshot, or its format is unknown.
    """
    try:
        document = _of_now(msgspec.json.decode(content))
        snapshot = msgspec.convert(document, Snapshot, dec_hook=_decode_overrides)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenSnapshot(str(error)) from None
    if snapshot.version != FORMAT:
        raise BrokenSnapshot(f"its format is {snapshot.version}, and this tsctl reads {FORMAT}")
    for entry in (*snapshot.models, *(entry for model in snapshot.earlier for entry in model.versions)):
        _check(entry)
    earlier = [(model.name, model.route) for model in snapshot.earlier if model.route is not None]
    for name, route in [*snapshot.routes.items(), *earlier]:
        if not is_valid(route):
            raise BrokenSnapshot(f"the route of {name} has impossible weights")
    return snapshot


def _of_now(document: Any) -> Any:
    """Return a document as this version of tsctl reads it; one of another shape stays as it is.

    Daemons of before, which this one replaces, named a registration's `overrides` otherwise. A declaration that is not
    known here is dropped: the first worker declares it again.
    """
    entries = document.get("models") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        request = entry.get("request") if isinstance(entry, dict) else None
        if isinstance(request, dict) and "wishes" in request:
            request["overrides"] = request.pop("wishes")
        if isinstance(entry, dict) and entry.get("declared") is not None:
            try:
                msgspec.convert(entry["declared"], Declared)
            except msgspec.ValidationError:
                entry["declared"] = None
    return document


def _decode_overrides(_: type, document: Any) -> Overrides:
    """Decode overrides; rows that this version of tsctl does not know are ignored.

    Raises:
        msgspec.ValidationError: a value is of the wrong type. (Limits are checked when the model is made.)
    """
    values = msgspec.convert(document, dict[str, Any])
    said = {name: msgspec.convert(values[name], ROWS[name].kind.stored) for name in values.keys() & ROWS.keys()}
    return Overrides(since=msgspec.convert(values.get("since", {}), dict[str, str]), **said)


def _check(entry: SnapshotEntry) -> None:
    """Check the names that become part of a path: another program may have written the file.

    Raises:
        BrokenSnapshot: a name holds characters that are not allowed.
    """
    if not NAME.fullmatch(entry.name):
        raise BrokenSnapshot(f"`{entry.name}` is not a model name")
    if not VERSION.fullmatch(entry.version):
        raise BrokenSnapshot(f"`{entry.version}` is not a version of {entry.name}")
    if entry.unpacked is not None and not _PLAIN.fullmatch(entry.unpacked):
        raise BrokenSnapshot(
            f"`unpacked` of {entry.name}/{entry.version} is `{entry.unpacked}`, not the name of a directory"
        )


def read_content(file: Path) -> bytes | None:
    """Read a snapshot's bytes; None if there is no file.

    Raises:
        BrokenSnapshot: the file cannot be read.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BrokenSnapshot(str(error.strerror)) from None


def read_snapshot(file: Path) -> Snapshot | None:
    """Read and decode a snapshot; None if there is no file.

    Raises:
        BrokenSnapshot: the file cannot be read or decoded.
    """
    content = read_content(file)
    return None if content is None else decode_snapshot(content)


def write_snapshot(file: Path, content: bytes) -> None:
    """Replace the snapshot; on return the new one is on the disk.

    Raises:
        OSError: the write failed, and the old file is still there; or only the fsync of the directory failed, and
            the new file is there, but may not survive a power failure.
    """
    descriptor, name = tempfile.mkstemp(prefix=_DRAFT, dir=file.parent)  # 0600
    try:
        with os.fdopen(descriptor, "wb") as draft:
            draft.write(content)
            draft.flush()
            os.fsync(draft.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _fsync_directory(file.parent)


def set_aside(file: Path) -> Path:
    """Rename a broken snapshot, so that the next write does not replace it; return the new name.

    Raises:
        OSError: the file cannot be renamed.
    """
    aside = _aside(file)
    file.rename(aside)
    _fsync_directory(file.parent)
    return aside


def copy_aside(file: Path, content: bytes) -> Path:
    """Write the content of a snapshot beside it, where the next write does not replace it; return the name.

    Raises:
        OSError: it cannot be written.
    """
    aside = _aside(file)
    write_snapshot(aside, content)
    return aside


def _aside(file: Path) -> Path:
    number = 1
    while (aside := file.with_name(f"{file.stem}.broken-{number}{file.suffix}")).exists():
        number += 1
    return aside


def remove_drafts(directory: Path) -> None:
    """Remove drafts that a crash left behind during a write."""
    for draft in directory.glob(f"{_DRAFT}*"):
        with contextlib.suppress(OSError):
            draft.unlink()


def _fsync_directory(directory: Path) -> None:
    """Fsync a directory, which makes a rename in it durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
