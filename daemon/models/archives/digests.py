"""SHA-256 digests of an archive's bytes, and of the files that were unpacked from them.

An archive may be replaced, or overwritten in place, while the daemon reads: by a copy that has not ended, or by
somebody who wants other bytes unpacked than were hashed. So `SteadyFile` returns only bytes that were hashed. A second
hash of the whole file after the unpacking would not show a writer who restores the old bytes; a private copy would
take the archive's size on the disk again. The digests of blocks take 256 bytes a MiB, and a second hash of each block.

`sums` is the list of an unpacked archive's files, in the format of `sha256sum --zero`, beside the directory and not
inside: STATE/sums/SHA256 of STATE/models/SHA256. With them a directory that was kept is compared with the archive.
Files that a handler has added to the directory are not the archive's, and are not looked at.

Hashing takes 0.7 s a GB, too much for a start, before which nobody is served. So the first entry of the sums is a seal:
a digest of what a file's status says while nobody writes to the file, as git's index has it. Each write and each rename
sets the time of the status (ctime), which no program can choose. While the seal is right, the files are as they were
when they were last hashed; 10 000 files take 0.05 s.
"""

import contextlib
import errno
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tsctl.daemon.core.errors import InvalidModel

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 128 * 1024  # bytes; read and hashed whole, even for one byte of them
_SEAL = b"# "  # of the first entry, which `sha256sum` skips


class SteadyFile(io.RawIOBase):
    """A file whose bytes are those of its SHA-256, whoever writes to the file meanwhile. The constructor blocks.

    Attributes:
        name: for messages.
        size: bytes.
        sha256: of the whole file, as 64 hexadecimal digits.

    Raises:
        InvalidModel: a block is read that has changed since.
        OSError: the file cannot be read, or is none.
    """

    def __init__(self, file: Path) -> None:
        self.name = file.name
        self._descriptor = _open_regular(file)
        self._blocks = bytearray()  # 32 bytes of each
        self._held, self._block = -1, memoryview(b"")  # the block that was read last, and its number
        self._position = self.size = 0
        whole = hashlib.sha256()
        while block := os.pread(self._descriptor, _BLOCK, self.size):
            whole.update(block)
            self._blocks += hashlib.sha256(block).digest()
            self.size += len(block)
            if len(block) < _BLOCK:
                break
        self.sha256 = whole.hexdigest()

    def start(self) -> bytes:
        """Return the first bytes, which tell the kind of archive."""
        return bytes(self._load(0)[:4]) if self.size else b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        if origin + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = origin + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if self._position >= self.size:
            return 0
        number, offset = divmod(self._position, _BLOCK)
        into = memoryview(buffer).cast("B")
        found = self._load(number)[offset : offset + len(into)]
        into[: len(found)] = found
        self._position += len(found)
        return len(found)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def _load(self, number: int) -> memoryview:
        """Return a block, read anew unless it was the last one; raise InvalidModel if the block has changed."""
        if number != self._held:
            block = os.pread(self._descriptor, min(_BLOCK, self.size - number * _BLOCK), number * _BLOCK)
            if hashlib.sha256(block).digest() != self._blocks[number * 32 : number * 32 + 32]:
                raise InvalidModel(
                    f"The archive `{self.name}` was written to while it was read; register it when it is complete."
                )
            self._held, self._block = number, memoryview(block)
        return self._block


def _open_regular(file: Path) -> int:
    """Open a regular file, and return its descriptor.

    Raises:
        OSError: the file cannot be opened, or has become something else: opening a pipe would wait for its writer.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file")
    return descriptor


def sums_of(directory: Path) -> Path:
    """Return the file of an unpacked archive's sums; nothing says that the file exists."""
    return directory.parent.parent / "sums" / directory.name


def write_sums(directory: Path, files: Mapping[str, bytes], draft: Path) -> None:
    """Write the sums of a directory that is about to appear; they appear whole or not at all. Blocks.

    Args:
        files: path in the directory → SHA-256.
        draft: the directory of the files until then.
    """
    sums_of(directory).parent.mkdir(mode=0o700, exist_ok=True)
    entries = [b"%s  %s" % (digest.hex().encode(), os.fsencode(name)) for name, digest in files.items()]
    _replace(sums_of(directory), [_seal_of(draft, entries), *entries])


def holds_its_files(directory: Path) -> bool:
    """Return whether a directory has sums, and all its archive's files are there as they were unpacked. Blocks."""
    try:
        place = directory.resolve()
        seal, entries = _read(directory)
        now = _seal_of(place, entries)  # before the files are read: what is written meanwhile breaks the seal
        if not all(_is_as_unpacked(place, entry) for entry in entries):
            return False
    except OSError:
        return False
    if seal != now:
        with contextlib.suppress(OSError):  # then they are hashed again the next time
            _replace(sums_of(directory), [now, *entries])
    return True


def is_sealed(directory: Path) -> bool:
    """Return whether nobody has written to the archive's files since they were unpacked, or hashed for the last time.

    If not, they may still be as they were unpacked, as in a copy of the state directory.
    """
    try:
        seal, entries = _read(directory)
        return seal == _seal_of(directory, entries)
    except OSError:
        return False


def _read(directory: Path) -> tuple[bytes, list[bytes]]:
    """Return the seal in a directory's sums, empty for none, and the entries of its files."""
    entries = sums_of(directory).read_bytes().split(b"\0")[:-1]
    seal = entries.pop(0) if entries and entries[0].startswith(_SEAL) else b""
    return seal, entries


def _replace(target: Path, entries: list[bytes]) -> None:
    descriptor, draft = tempfile.mkstemp(prefix=".", dir=target.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(b"".join(b"%s\0" % entry for entry in entries))
        os.rename(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _seal_of(directory: Path, entries: list[bytes]) -> bytes:
    """Return the seal of the files that entries name; raise OSError if one is missing."""
    digest = hashlib.sha256()
    for entry in entries:
        name = entry.partition(b"  ")[2]
        status = os.lstat(os.path.join(os.fsencode(directory), name))
        facts = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        digest.update(b"%b %d %d %d %d %d\0" % (name, *facts))
    return b"%b%b" % (_SEAL, digest.hexdigest().encode())


def _is_as_unpacked(place: Path, entry: bytes) -> bool:
    digest, _, name = entry.partition(b"  ")
    path = place / os.fsdecode(name)
    if path.resolve() != path:  # a link, or below one
        return False
    with open(_open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode() == digest
