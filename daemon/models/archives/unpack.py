"""Unpack an untrusted archive.

No path, link or device leaves the target; the limits apply to the bytes and files that are really read, not to
those that the archive claims; and the target appears whole or not at all.
Unpacked archives are named by their content, so the same archive is unpacked once. The name is the digest of the very
bytes that are unpacked (digests.py).
"""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tsctl.daemon.core.errors import InvalidModel, NotStored
from tsctl.daemon.marfile import CHUNK, DAMAGED
from tsctl.daemon.models.archives.digests import SteadyFile, holds_its_files, write_sums
from tsctl.daemon.models.archives.readers import Members, open_archive, shown

LONGEST_NAME = 1024  # bytes of a member's path; with the directory before it, it must stay below Linux's 4096
DEEPEST = 64  # directories above a member: shutil.rmtree recurses

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one archive: bytes of all files; number of files and directories."""

    total_bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMark:
    """An archive file's size in bytes and modification time in nanoseconds, to see later writes."""

    file: str
    size: int
    modified: int


def mark_of(archive: Path) -> ArchiveMark | None:
    """Return an archive file's mark; None if the file is gone."""
    try:
        status = archive.stat()
    except OSError:
        return None
    return ArchiveMark(file=str(archive), size=status.st_size, modified=status.st_mtime_ns)


# Errors of this machine, not of an archive.
_OURS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EIO)


def unpack(
    archive: Path,
    models_dir: Path,
    limits: Limits,
    progress: Progress = lambda done, total: None,
    pinned: str = "",
) -> Path:
    """Unpack an archive file into a directory of its own. Blocks; run it in a thread.

    Args:
        archive: a zip, or a gzipped tar.
        models_dir: the directory of unpacked archives; drafts are made there, so that a rename suffices.
        progress: called with the bytes unpacked and the bytes in all, in the calling thread.
        pinned: the SHA-256 that the archive must have; empty for any.

    Returns:
        The directory, `models_dir/SHA256`, which may have existed already. If a pin names an existing one whose files
        are not known to be the archive's, the archive is unpacked again in its place.

    Raises:
        InvalidModel: the file is not the pinned one, is no archive, is damaged or too large, was written to meanwhile,
            or would write outside its directory.
        NotStored: this machine cannot unpack the archive, e.g. because the disk is full.
    """
    with open_steady(archive) as file:
        check_digest(archive.name, file.sha256, pinned)
        target = models_dir / file.sha256
        if not target.is_dir() or (pinned and not holds_its_files(target)):
            _unpack_to(target, archive, file, limits, progress)
    return target


def _unpack_to(target: Path, archive: Path, file: SteadyFile, limits: Limits, progress: Progress) -> None:
    """Unpack an archive into a draft, which takes the target's place.

    A worker that runs from the target keeps the files that it has open, and finds the archive's own by their paths.
    """
    models_dir, replace = target.parent, target.is_dir()
    try:
        draft = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=models_dir))
    except OSError as error:
        raise NotStored(archive.name, "unpacked", models_dir, error) from error
    altered = draft.with_name(f".altered-{draft.name}")
    try:
        with open_archive(file, limits.files) as (size, members):
            files = _extract(members, draft, limits, lambda done: progress(done, max(done, size)))
        write_sums(target, files, draft)
        if replace:
            with contextlib.suppress(FileNotFoundError):  # another registration does the same
                target.rename(altered)
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():  # else another registration was quicker
                raise
    except DAMAGED as error:
        raise InvalidModel(f"The archive `{archive.name}` is damaged or cut short: {shown(str(error))}.") from error
    except (NotImplementedError, RuntimeError) as error:  # a zip that zipfile does not support
        raise InvalidModel(f"The archive `{archive.name}` cannot be read: {shown(str(error))}.") from error
    except OSError as error:
        if error.errno in _OURS:
            raise NotStored(archive.name, "unpacked", models_dir, error) from error
        raise InvalidModel(f"The archive `{archive.name}` cannot be unpacked: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(altered, ignore_errors=True)


def open_steady(file: Path) -> SteadyFile:
    """Open and hash a file. Blocks.

    Raises:
        InvalidModel: the file cannot be read.
    """
    try:
        return SteadyFile(file)
    except OSError as error:
        raise InvalidModel(f"The archive `{file.name}` cannot be read: {error.strerror}.") from None


def check_digest(name: str, digest: str, pinned: str) -> None:
    """Raise InvalidModel if a file's SHA-256 is not the pinned one; an empty one allows any."""
    if pinned and digest != pinned:
        raise InvalidModel(f"The SHA-256 of `{name}` is {digest}; expected {pinned}: this is another archive.")


def safe_name(name: str) -> PurePosixPath:
    """Check one member's name, and return it as a path.

    Raises:
        InvalidModel: the name is absolute, holds `..`, a backslash or a zero byte, or is too long or too deep.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise InvalidModel(f"The archive would write outside its directory: `{shown(name)}`.")
    if "\\" in name or "\0" in name:
        raise InvalidModel(f"The archive holds a name with a backslash or a zero byte: `{shown(name)}`.")
    long = len(os.fsencode(name)) > LONGEST_NAME or any(len(os.fsencode(part)) > 255 for part in path.parts)
    if long or len(path.parts) > DEEPEST:
        raise InvalidModel(f"The archive holds a name that is too long or too deep: `{shown(name)}`.")
    return path


def _extract(members: Members, draft: Path, limits: Limits, progress: Callable[[int], None]) -> dict[str, bytes]:
    """Write an archive's members into a directory, and return each file's SHA-256."""
    done = count = 0
    files: dict[str, bytes] = {}
    directories = {PurePosixPath()}
    for name, is_directory, content in members:
        path = safe_name(name)
        above = [parent for parent in path.parents if parent not in directories]
        count += 1 + len(above)
        if count > limits.files:
            raise InvalidModel(f"The archive holds more than {limits.files} files and directories (archive_files).")
        try:
            for directory in (*reversed(above), *([path] if is_directory else [])):
                (draft / directory).mkdir(exist_ok=True)
                directories.add(directory)
            if is_directory:
                continue
            file = (draft / path).open("xb")
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            raise InvalidModel(f"The archive holds `{shown(name)}` twice.") from None
        assert content is not None
        digest = hashlib.sha256()
        with file:
            while chunk := content.read(CHUNK):
                done += len(chunk)
                if done > limits.total_bytes:
                    raise InvalidModel(f"The archive unpacks to more than {limits.total_bytes} bytes (archive_bytes).")
                file.write(chunk)
                digest.update(chunk)
                progress(done)
        files[str(path)] = digest.digest()
    return files


def model_root(directory: Path) -> Path:
    """Find the directory that holds the model's files.

    A tgz archive of torch-model-archiver has one directory at its top, and SageMaker's layout has
    one in the model's directory: if a single directory holds everything, it is the root.
    """
    inside = [entry for entry in directory.iterdir() if not entry.name.startswith(".")]
    if len(inside) == 1 and inside[0].is_dir() and inside[0].name != "MAR-INF":
        return inside[0]
    return directory
