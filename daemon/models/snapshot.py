"""What is registered, as a file: the form of the snapshot, and writing it so that it is whole.

    write `.snapshot-…` ──▶ fsync it ──▶ rename it to `snapshot.json` ──▶ fsync the directory

A crash between any two steps leaves the old snapshot or the new one, never half of one. Only what
a registration asked for is in it: what came from the archive's `model-config.yaml`, from the
`models` block or from the daemon's defaults is read again when the model is restored.

Everything here blocks; run `write_snapshot` in a thread.
"""

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from daemon.marfile import NAME, VERSION
from daemon.models.archive import ArchiveMark
from daemon.models.modelconfig import ROWS, Wishes
from daemon.models.request import Request

FORMAT = 1
_DRAFT = ".snapshot-"
_PLAIN = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,254}")  # one step down, never up


class BrokenSnapshot(Exception):
    """A snapshot file cannot be read; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One registered version.

    Attributes:
        request: what was asked for, with what was asked for since (`scale`).
        default: it is the default version of its model.
        chosen: and somebody said so.
        unpacked: the name of its directory among the unpacked archives; None if it is served in place.
        archive: what the archive was like; None if it is served in place.
        listed: it was loaded because `--models` or `load_models` named it.
    """

    name: str
    version: str
    request: Request
    default: bool = False
    chosen: bool = False
    unpacked: str | None = None
    archive: ArchiveMark | None = None
    listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every registered version; those of one model in the order they were registered."""

    version: int = FORMAT
    models: tuple[Entry, ...] = ()


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Make the file's content: JSON, indented, for people who look."""
    return msgspec.json.format(msgspec.json.encode(snapshot, enc_hook=_encode_wishes), indent=2) + b"\n"


def decode_snapshot(content: bytes) -> Snapshot:
    """Read a file's content.

    Raises:
        BrokenSnapshot: it is no snapshot, or one of a form that this version does not know.
    """
    try:
        snapshot = msgspec.json.decode(content, type=Snapshot, dec_hook=_decode_wishes)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenSnapshot(str(error)) from None
    if snapshot.version != FORMAT:
        raise BrokenSnapshot(f"its form is {snapshot.version}, and this tsctl knows {FORMAT}")
    for entry in snapshot.models:
        _check(entry)
    return snapshot


def _encode_wishes(wishes: Wishes) -> dict[str, Any]:
    return {**wishes.said, "since": wishes.since}


def _decode_wishes(_: type, document: Any) -> Wishes:
    """Read wishes: of rows that another version knows, and this one does not, nothing is read.

    Raises:
        msgspec.ValidationError: a value is of the wrong type. (Its limits are checked when the version is made.)
    """
    values = msgspec.convert(document, dict[str, Any])
    known = {name: ROWS[name].kind.stored for name in values.keys() & ROWS.keys() if values[name] is not None}
    said = {name: msgspec.convert(values[name], kind) for name, kind in known.items()}
    return Wishes(since=msgspec.convert(values.get("since", {}), dict[str, str]), **said)


def _check(entry: Entry) -> None:
    """Check what becomes part of a path: another program may have written the file.

    Raises:
        BrokenSnapshot: a name is not plain.
    """
    if not NAME.fullmatch(entry.name):
        raise BrokenSnapshot(f"`{entry.name}` is no model name")
    if not VERSION.fullmatch(entry.version):
        raise BrokenSnapshot(f"`{entry.version}` is no version of {entry.name}")
    if entry.unpacked is not None and not _PLAIN.fullmatch(entry.unpacked):
        raise BrokenSnapshot(f"`unpacked` of {entry.name}/{entry.version} is `{entry.unpacked}`, and no plain name")


def read_content(file: Path) -> bytes | None:
    """Read a snapshot's bytes; None if there is none.

    Raises:
        BrokenSnapshot: it cannot be read.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BrokenSnapshot(str(error.strerror)) from None


def read_snapshot(file: Path) -> Snapshot | None:
    """Read and decode a snapshot, None if there is none; raises as `decode_snapshot`."""
    content = read_content(file)
    return None if content is None else decode_snapshot(content)


def write_snapshot(file: Path, content: bytes) -> None:
    """Replace the snapshot; when this returns, it is on the disk.

    Raises:
        OSError: it could not be written; the old one is still there. Or its name could not be made to last;
            then the new one is there, until the power goes.
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
    """Rename a broken snapshot, so that the next one does not replace it; give its new name.

    Raises:
        OSError: it cannot be renamed.
    """
    number = 1
    while (aside := file.with_name(f"{file.stem}.broken-{number}{file.suffix}")).exists():
        number += 1
    file.rename(aside)
    _fsync_directory(file.parent)
    return aside


def remove_drafts(directory: Path) -> None:
    """Remove what a crash left behind while a snapshot was being written."""
    for draft in directory.glob(f"{_DRAFT}*"):
        with contextlib.suppress(OSError):
            draft.unlink()


def _fsync_directory(directory: Path) -> None:
    """Make a rename last: it is in the directory, not in the file."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
