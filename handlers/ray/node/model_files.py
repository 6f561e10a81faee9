"""A model's directory on the way to the nodes: named by its content, sent in pieces, unpacked once a node.

    bridge   digest_of(directory)                    names the content
    node     Copies.find(digest)                     there already: nothing is sent
    bridge   pieces_of(directory, digest)            the tar stream, cut: each piece is an object of Ray's
    node     Copies.unpack(digest, pieces)           a draft, then a rename

The bytes that are packed are hashed again: a file that was written to meanwhile ends the stream with an error, so that
no node keeps a copy under the name of another content.

Workers of one node that start together unpack once: the first one locks the digest. A copy that no process uses is
removed when another one is unpacked and it has not been used for `KEPT_FOR` seconds.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
import stat
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

PIECE = 32 * 1024 * 1024  # bytes
DRAFT = ".unpacking-"  # how the names of unfinished copies begin
KEPT_FOR = 7 * 24 * 3600.0  # seconds


def members_of(directory: Path) -> list[Path]:
    """Return all files and directories below, in an order that depends on their names only; without bytecode."""
    found = [path for path in directory.rglob("*") if "__pycache__" not in path.parts]
    return sorted(found, key=lambda path: path.relative_to(directory).as_posix())


class FilesChanged(OSError):
    """A file of a model was written to after the digest of the directory was taken."""


def digest_of(directory: Path) -> str:
    """Return a name for the content of a directory: SHA-256 of names, modes and bytes. Blocks."""
    digest = hashlib.sha256()
    for path in members_of(directory):
        name = path.relative_to(directory).as_posix()
        if path.is_dir():
            digest.update(_head(name))
            continue
        with path.open("rb") as file:
            digest.update(_head(name, os.fstat(file.fileno())))
            while block := file.read(1024 * 1024):
                digest.update(block)
    return digest.hexdigest()


def pieces_of(directory: Path, expected: str, size: int = PIECE) -> Iterator[bytes]:
    """Yield the tar stream of a directory in pieces of `size` bytes; links are followed. Blocks.

    Args:
        expected: the digest of the directory.

    Raises:
        FilesChanged: the directory has another digest now; after the last piece.
        OSError: a file cannot be read.
    """
    reading, writing = os.pipe()

    def pack() -> None:
        with open(writing, "wb") as out, tarfile.open(fileobj=out, mode="w|", dereference=True) as tar:
            if _pack(directory, tar) != expected:
                raise FilesChanged(f"{directory} was written to while it was sent")

    with ThreadPoolExecutor(1) as packing, open(reading, "rb") as stream:
        packed = packing.submit(pack)
        while piece := stream.read(size):
            yield piece
        packed.result()


def _pack(directory: Path, tar: tarfile.TarFile) -> str:
    """Add a directory to an archive, and return the digest of what was added."""
    digest = hashlib.sha256()
    for path in members_of(directory):
        name = path.relative_to(directory).as_posix()
        if path.is_dir():
            digest.update(_head(name))
            tar.add(path, name, recursive=False)
            continue
        with path.open("rb") as file:
            member = tar.gettarinfo(arcname=name, fileobj=file)
            digest.update(_head(name, os.fstat(file.fileno())))
            tar.addfile(member, _Hashed(file, digest))
    return digest.hexdigest()


def _head(name: str, status: os.stat_result | None = None) -> bytes:
    """Return what precedes a file's bytes in the digest; a directory has no status."""
    encoded = name.encode("utf-8", "surrogateescape")
    mode = 0 if status is None else 1 + bool(status.st_mode & 0o100)
    length = b"" if status is None else b"%d " % status.st_size
    return b"%d:%b %d %b" % (len(encoded), encoded, mode, length)


class _Hashed:
    """A file whose bytes are added to a digest as they are read."""

    def __init__(self, file: IO[bytes], digest: "hashlib._Hash") -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._digest.update(block)
        return block


class _Joined(io.RawIOBase):
    """The stream of which pieces are cut."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader passes
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._piece = memoryview(piece)
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count


def cache_dir() -> Path:
    """Return the directory of copies on this node: `$TSCTL_RAY_CACHE`, or in the user's cache directory."""
    named = os.environ.get("TSCTL_RAY_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tsctl" / "models"


class Copies:
    """The unpacked models of a node.

    Raises:
        PermissionError: the directory is another user's, who could put code there.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = directory.stat()
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o022:
            raise PermissionError(
                f"{directory} can be written by other users, and models are code:"
                " make it private (chmod 700), or name another one as TSCTL_RAY_CACHE"
            )
        self._directory = directory
        self._used: list[int] = []  # descriptors: shared locks of the copies in use, held by this process until its end

    def find(self, digest: str) -> Path | None:
        """Return the copy of this content, in use by this process from now on; None if there is none."""
        lock = self._open(digest)
        fcntl.flock(lock, fcntl.LOCK_SH)
        target = self._directory / digest
        if not target.is_dir():
            os.close(lock)
            return None
        self._used.append(lock)
        os.utime(target)
        return target

    def unpack(self, digest: str, pieces: Iterator[bytes]) -> Path:
        """Return the copy of this content, made of `pieces` if no other process was quicker. Blocks.

        Raises:
            OSError: there is no room on the disk, for example.
            tarfile.TarError: the pieces are damaged.
        """
        # Not the lock of those who use the copy, which they keep.
        with open(self._open(f"{digest}.making"), "rb") as making:
            fcntl.flock(making, fcntl.LOCK_EX)
            found = self.find(digest)
            if found is not None:
                return found
            self._remove_unused()
            draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self._directory))
            try:
                with tarfile.open(fileobj=io.BufferedReader(_Joined(pieces)), mode="r|") as tar:
                    tar.extractall(draft, filter="data")
                draft.rename(self._directory / digest)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            found = self.find(digest)
            assert found is not None, "new copies are not removed"
            return found

    def _open(self, name: str) -> int:
        return os.open(self._directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _remove_unused(self) -> None:
        """Remove copies that have not been used for long, and that no process has locked."""
        for copy in self._directory.iterdir():
            with contextlib.suppress(OSError):  # another process removes it, or uses it
                if not copy.is_dir() or time.time() - copy.stat().st_mtime < KEPT_FOR:
                    continue
                if copy.name.startswith(DRAFT):
                    shutil.rmtree(copy)
                    continue
                with open(self._open(copy.name), "rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(copy)
