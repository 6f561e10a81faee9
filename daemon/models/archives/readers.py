"""Read the members of a zip or a gzipped tar file; nothing is written here.

zipfile and tarfile are not made for hostile archives: members that they would read or unpack at once without a bound
are refused first.
"""

import contextlib
import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives.digests import SteadyFile

CHUNK = 1024 * 1024
_ENTRY = 512  # bytes of a zip's directory for each member that it may hold: 46, a name, extra fields
_TAR_HEADER = 16 * 1024  # bytes that may come before a member: its header, long names, extended headers
_TAR_PADDING = 16 * CHUNK  # zero bytes that may follow the last; tar fills up its last record, at most 1 MiB as a rule

# Errors that zipfile, tarfile and their decompressors raise for damaged bytes (the test feeds them some).
DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, LookupError, ValueError,
    OverflowError,
)  # fmt: skip


class Archive:
    """The common interface of zip and tar archives: named members with content."""

    size: int  # bytes in all, as the archive claims; for the progress display only

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        """Yield each member's name, whether the member is a directory, and a file's content (None of a directory)."""
        raise NotImplementedError


@contextlib.contextmanager
def open_archive(file: SteadyFile, files: int) -> Iterator[Archive]:
    """Open an archive of at most `files` members; a damaged archive raises one of `DAMAGED`.

    Raises:
        InvalidModel: the archive is neither a zip nor a gzipped tar, or was written to meanwhile; reading its members
            may raise the same errors.
        OSError: the file cannot be read; likewise.
        RuntimeError: zipfile cannot read this kind of zip.
    """
    start = file.start()
    if start[:2] == b"PK":
        with ZipBytes(file, max(CHUNK, files * _ENTRY)) as raw, zipfile.ZipFile(raw) as zipped:
            yield _Zip(zipped)
    elif start[:2] == b"\x1f\x8b":
        with (
            io.BufferedReader(file, CHUNK) as packed,
            TarBytes(packed) as stream,
            tarfile.open(fileobj=stream, mode="r:") as tarred,
        ):
            yield _Tar(tarred, stream, file.size)
    else:
        raise InvalidModel(f"The archive `{file.name}` is neither a zip nor a gzipped tar file.")


class ZipBytes(io.BufferedReader):
    """A zip's bytes, with a bounded directory.

    zipfile reads the directory whole: a million members would be objects before the first is seen.
    """

    def __init__(self, file: io.RawIOBase, most: int) -> None:
        super().__init__(file)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._most:
            raise zipfile.BadZipFile(f"its directory has {size} bytes, and at most {self._most} are allowed")
        return super().read(size)


class _Zip(Archive):
    def __init__(self, zipped: zipfile.ZipFile) -> None:
        self._zipped = zipped
        self.size = sum(info.file_size for info in zipped.infolist())

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        for info in self._zipped.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise InvalidModel(f"The archive holds a link or a device: `{shown(info.filename)}`.")
            if info.flag_bits & 0x1:
                raise InvalidModel(f"The archive is encrypted: `{shown(info.filename)}`. Make one without a password.")
            # zipfile unpacks a chunk of any other method at once: a megabyte of bzip2 can be 20 GB.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InvalidModel(
                    f"`{shown(info.filename)}` is compressed by method {info.compress_type} of zip: only stored and "
                    f"deflated files are read."
                )
            # `orig_filename`, because `filename` ends at the first zero byte, and would hide that.
            if info.is_dir():
                yield info.orig_filename, True, None
            else:
                with self._zipped.open(info) as content:
                    yield info.orig_filename, False, content


class TarBytes(gzip.GzipFile):
    """A tar file's bytes, with at most `_TAR_HEADER` of them before a member.

    tarfile reads a header whole whatever its size, follows chains of headers and lists of holes, and searches them
    with regular expressions that take quadratic time in a run of digits (CVE-2024-6232).

    Attributes:
        between: whether the bytes read now are not a member's content.
        last: the bytes that were read last between members.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file)
        self.last = b""
        self._left: int | None = _TAR_HEADER

    @property
    def between(self) -> bool:
        return self._left is not None

    @between.setter
    def between(self, between: bool) -> None:
        self._left = _TAR_HEADER if between else None

    def read(self, size: int | None = -1) -> bytes:
        if self._left is None or size is None:
            return super().read(size)
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError(f"headers of more than {_TAR_HEADER} bytes")
        data = self.last = super().read(size)
        if re.search(rb"[0-9]{256}", data):
            raise tarfile.ReadError("a header with a number of more than 255 digits")
        return data


class _Tar(Archive):
    def __init__(self, tarred: tarfile.TarFile, stream: TarBytes, size: int) -> None:
        self._tarred = tarred
        self._stream = stream
        self.size = size  # of the file; the real size is known only after reading it all

    def members(self) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
        for info in self._tarred:
            if info.issparse():
                raise InvalidModel(
                    f"The archive holds a sparse file: `{shown(info.name)}`. Make the archive without `--sparse`."
                )
            if info.isdir():
                yield info.name, True, None
            elif info.isreg():
                self._stream.between = False
                yield info.name, False, self._tarred.extractfile(info)
            else:
                raise InvalidModel(f"The archive holds a link or a device: `{shown(info.name)}`.")
            self._stream.between = True
        self._check_end()

    def _check_end(self) -> None:
        """Read to the end, where gzip has its checksum; tarfile takes a damaged header for the end of the archive."""
        rest, count = self._stream.last, 0
        self._stream.between = False
        while rest:
            count += len(rest)
            if rest.strip(b"\0") or count > _TAR_PADDING:
                raise tarfile.ReadError("a damaged header, or data after the end")
            rest = self._stream.read(CHUNK)


def shown(name: str) -> str:
    """Return a member's name made safe to print: its first 200 characters, non-ASCII ones escaped."""
    return ascii(name[:200])[1:-1]
