"""Unpack an archive that nobody vouches for.

Whatever it holds: no path, link or device leaves the target, the bytes and files are bounded by
what is really read (not by what the archive says), and the target appears whole or not at all.
Unpacked archives are named by their content, so the same archive is unpacked once.
"""

import contextlib
import gzip
import hashlib
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from daemon.errors import InvalidModel

_CHUNK = 1024 * 1024

# What zipfile, tarfile and their decompressors raise for damaged bytes (the test feeds them some).
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, LookupError, ValueError)

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one archive may hold."""

    total_bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMark:
    """How to see that an archive file has been written since: its size in bytes, and when, in nanoseconds."""

    file: str
    size: int
    modified: int


def mark_of(archive: Path) -> ArchiveMark | None:
    """Look at an archive file; None if it is not there."""
    try:
        status = archive.stat()
    except OSError:
        return None
    return ArchiveMark(file=str(archive), size=status.st_size, modified=status.st_mtime_ns)


class _Archive:
    """What zip and tar have in common: named members with content."""

    size: int  # bytes in all, as the archive claims; for the progress display only

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        """Yield name, whether it is a directory, and its content."""
        raise NotImplementedError


def unpack(archive: Path, models_dir: Path, limits: Limits, progress: Progress = lambda done, total: None) -> Path:
    """Unpack an archive file into a directory of its own. Blocks; run it in a thread.

    Args:
        archive: a zip, or a gzipped tar.
        models_dir: where unpacked archives live; on the same file system as the result.

    Returns:
        The directory, `models_dir/DIGEST`. It may have been there already.

    Raises:
        InvalidModel: it is neither, is damaged, is too large, or wants out of its directory.
    """
    target = models_dir / _digest(archive)
    if target.is_dir():
        return target
    draft = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=models_dir))
    try:
        with _open(archive) as opened:
            _extract(opened, draft, limits, progress)
        draft.chmod(0o700)
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():  # if it is, another registration was quicker
                raise
    except _DAMAGED as error:
        raise InvalidModel(f"The archive `{archive.name}` is damaged or cut short: {error}") from error
    except (NotImplementedError, RuntimeError) as error:  # encrypted, or a compression nobody has
        raise InvalidModel(f"The archive `{archive.name}` cannot be read: {error}") from error
    except OSError as error:
        raise InvalidModel(f"The archive `{archive.name}` cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _digest(archive: Path) -> str:
    try:
        file = archive.open("rb")
    except OSError as error:
        raise InvalidModel(f"The archive `{archive.name}` cannot be read: {error.strerror}.") from None
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


@contextlib.contextmanager
def _open(archive: Path) -> Iterator[_Archive]:
    with archive.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"PK":
        with zipfile.ZipFile(archive) as zipped:
            yield _Zip(zipped)
    elif start[:2] == b"\x1f\x8b":
        with _Gzip(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tarred:
            yield _Tar(tarred, archive)
    else:
        raise InvalidModel(f"The archive `{archive.name}` is neither a zip nor a gzipped tar file.")


class _Zip(_Archive):
    def __init__(self, zipped: zipfile.ZipFile) -> None:
        self._zipped = zipped
        self.size = sum(info.file_size for info in zipped.infolist())

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        for info in self._zipped.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise InvalidModel(f"The archive holds a link or a device: `{_shown(info.filename)}`.")
            # `orig_filename`: `filename` ends at the first zero byte, and would hide it.
            if info.is_dir():
                yield info.orig_filename, True, None
            else:
                with self._zipped.open(info) as content:
                    yield info.orig_filename, False, content


class _Gzip(gzip.GzipFile):
    """Reads a tar file's bytes, and refuses a header larger than a chunk: tarfile reads one whole."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _CHUNK:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return super().read(size)


class _Tar(_Archive):
    def __init__(self, tarred: tarfile.TarFile, archive: Path) -> None:
        self._tarred = tarred
        self.size = archive.stat().st_size  # the real size is known only after reading it all

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        for info in self._tarred:
            if info.isdir():
                yield info.name, True, None
            elif info.isreg():
                yield info.name, False, self._tarred.extractfile(info)
            else:
                raise InvalidModel(f"The archive holds a link or a device: `{_shown(info.name)}`.")


def safe_name(name: str) -> PurePosixPath:
    """Check one member's name.

    Raises:
        InvalidModel: it is absolute, climbs, or is not what it seems.
    """
    path = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or any(len(os.fsencode(part)) > 255 for part in path.parts)
    if odd or path.is_absolute() or ".." in path.parts:
        raise InvalidModel(f"The archive would write outside its directory: `{_shown(name)}`.")
    return path


def _shown(name: str) -> str:
    """Make a member's name safe to print; it may hold bytes that are no text."""
    return ascii(name[:200])[1:-1]


def _extract(archive: _Archive, draft: Path, limits: Limits, progress: Progress) -> None:
    done = files = 0
    for name, is_directory, content in archive.members():
        place = draft / safe_name(name)
        files += 1
        if files > limits.files:
            raise InvalidModel(f"The archive holds more than {limits.files} files.")
        if is_directory:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        assert content is not None
        try:
            file = place.open("xb")
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            raise InvalidModel(f"The archive holds `{_shown(name)}` twice.") from None
        with file:
            while chunk := content.read(_CHUNK):
                done += len(chunk)
                if done > limits.total_bytes:
                    raise InvalidModel(f"The archive unpacks to more than {limits.total_bytes} bytes.")
                file.write(chunk)
                progress(done, max(done, archive.size))


def model_root(directory: Path) -> Path:
    """Find the directory that holds the model's files.

    A tgz archive of torch-model-archiver has one directory at its top, and SageMaker's layout has
    one in the model's directory: where everything is in a single directory, that is the root.
    """
    inside = [entry for entry in directory.iterdir() if not entry.name.startswith(".")]
    if len(inside) == 1 and inside[0].is_dir() and inside[0].name != "MAR-INF":
        return inside[0]
    return directory
