"""Read the members of a zip or a gzipped tar file; nothing is written here.

zipfile and tarfile are not made for hostile archives: members that they would read or unpack at once without a bound
are refused first.
"""

import contextlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from typing import IO

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.marfile import CHUNK, LargeDirectory, TarBytes, ZipBytes, is_bounded
from tsctl.daemon.models.archives.digests import SteadyFile
from tsctl.daemon.targets import SAVED_BEFORE_ZIP

_ENTRY = 512  # bytes of a zip's directory for each member that it may hold: 46, a name, extra fields
SAVED_BY_TORCH = (
    "what `torch.save` wrote, such as weights: rename it, so that it ends in `.pth`, with the .py file of the model's"
    " class beside it, or pack both with `tsctl archive`."
)
_TAR_PADDING = 16 * CHUNK  # zero bytes that may follow the last; tar fills up its last record, at most 1 MiB as a rule


Members = Iterator[tuple[str, bool, IO[bytes] | None]]  # name, whether it is a directory, and a file's content


@contextlib.contextmanager
def open_archive(file: SteadyFile, files: int) -> Iterator[tuple[int, Members]]:
    """Open an archive of at most `files` members; a damaged archive raises one of `marfile.DAMAGED`.

    Yield how many bytes it says to hold, for the progress display only, and its members.

    Raises:
        InvalidModel: the archive is neither a zip nor a gzipped tar, has too many members, or was written to meanwhile;
            reading its members may raise the same errors.
        OSError: the file cannot be read; likewise.
        RuntimeError: zipfile cannot read this kind of zip.
    """
    start = file.start()
    if start[:2] == b"PK":
        with ZipBytes(file, max(CHUNK, files * _ENTRY), files) as raw, _opened(raw, file.name) as zipped:
            yield sum(info.file_size for info in zipped.infolist()), _members_of_zip(zipped)
    elif start[:2] == b"\x1f\x8b":
        with (
            io.BufferedReader(file, CHUNK) as packed,
            TarBytes(packed) as stream,
            tarfile.open(fileobj=stream, mode="r:") as tarred,
        ):
            yield file.size, _members_of_tar(tarred, stream)  # the real size is known only after reading it all
    elif start == SAVED_BEFORE_ZIP[:4]:  # no pickle of another program begins so
        raise InvalidModel(f"The archive `{file.name}` is {SAVED_BY_TORCH}")
    else:
        raise InvalidModel(f"The archive `{file.name}` is neither a zip nor a gzipped tar file.")


def _opened(raw: ZipBytes, name: str) -> zipfile.ZipFile:
    try:
        zipped = zipfile.ZipFile(raw)
    except LargeDirectory as error:
        raise InvalidModel(f"The archive `{name}` is too large: {error} (archive_files).") from None
    raw.members = None  # what is read from now on is the members' content
    return zipped


def _members_of_zip(zipped: zipfile.ZipFile) -> Members:
    for info in zipped.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise InvalidModel(f"The archive holds a link or a device: `{shown(info.filename)}`.")
        if info.flag_bits & 0x1:
            raise InvalidModel(f"The archive is encrypted: `{shown(info.filename)}`. Make one without a password.")
        if not is_bounded(info):
            raise InvalidModel(
                f"`{shown(info.filename)}` is compressed by method {info.compress_type} of zip: only stored and "
                f"deflated files are read."
            )
        # `orig_filename`, because `filename` ends at the first zero byte, and would hide that.
        if info.is_dir():
            yield info.orig_filename, True, None
        else:
            with zipped.open(info) as content:
                yield info.orig_filename, False, content


def _members_of_tar(tarred: tarfile.TarFile, stream: TarBytes) -> Members:
    for info in tarred:
        if info.issparse():
            raise InvalidModel(
                f"The archive holds a sparse file: `{shown(info.name)}`. Make the archive without `--sparse`."
            )
        if info.isdir():
            yield info.name, True, None
        elif info.isreg():
            stream.between = False
            yield info.name, False, tarred.extractfile(info)
        else:
            raise InvalidModel(f"The archive holds a link or a device: `{shown(info.name)}`.")
        stream.between = True
    _check_end(stream)


def _check_end(stream: TarBytes) -> None:
    """Read to the end, where gzip has its checksum; tarfile takes a damaged header for the end of the archive."""
    rest, count = stream.last, 0
    stream.between = False
    while rest:
        count += len(rest)
        if rest.strip(b"\0") or count > _TAR_PADDING:
            raise tarfile.ReadError("a damaged header, or data after the end")
        rest = stream.read(CHUNK)


def shown(name: str) -> str:
    """Return a member's name made safe to print: its first 200 characters, non-ASCII ones escaped."""
    return ascii(name[:200])[1:-1]
