"""A log, followed from its end: complete lines only, through rotations."""

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

_BLOCK = 64 * 1024  # bytes; longer than the longest line of a worker


class FollowedLog:
    """The lines that are added to a file from now on, an unfinished one included; the file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        with contextlib.suppress(OSError):
            self._file = path.open("rb")
            self._file.seek(end_of_lines(self._file))

    @property
    def position(self) -> int:
        """The byte of the file at which the first line begins that is not read yet; 0 without a file."""
        return 0 if self._file is None else self._file.tell() - len(self._rest)

    def lines(self) -> list[str]:
        """Return the lines since the last call; a rotated file is read to its end, then the new one."""
        found = self._read()
        with contextlib.suppress(OSError):
            now = self._path.stat()
            if self._file is None or not os.path.samestat(now, os.fstat(self._file.fileno())):
                found += self._read()  # what was written after the read above
                if self._rest:  # torn: nothing is added to a rotated file
                    found.append(self._rest.decode(errors="replace"))
                    self._rest = b""
                self.close()
                self._file = self._path.open("rb")
                found += self._read()
            elif now.st_size < self._file.tell():  # truncated
                self._file.seek(0)
                self._rest = b""
                found += self._read()
        return found

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> list[str]:
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def end_of_lines(file: BinaryIO) -> int:
    """Return the byte behind the last line feed; the file's size if there is none in its last 64 KiB."""
    size = file.seek(0, os.SEEK_END)
    begin = max(0, size - _BLOCK)
    file.seek(begin)
    last = file.read(size - begin).rfind(b"\n")
    if last >= 0:
        return begin + last + 1
    return size if begin else 0
