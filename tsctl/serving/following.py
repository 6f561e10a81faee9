"""A model's log, followed from a position: complete lines only, through rotations."""

import contextlib
import os
from pathlib import Path
from typing import BinaryIO


class FollowedLog:
    """The lines that are added to a file from now on; the file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        with contextlib.suppress(OSError):
            self._file = path.open("rb")
            self._file.seek(0, os.SEEK_END)

    def lines(self) -> list[str]:
        """Return the lines since the last call; a rotated file is read to its end, then the new one."""
        found = self._read()
        with contextlib.suppress(OSError):
            now = self._path.stat()
            if self._file is None or not os.path.samestat(now, os.fstat(self._file.fileno())):
                self.close()
                self._file = self._path.open("rb")
                found += self._read()
            elif now.st_size < self._file.tell():  # truncated
                self._file.seek(0)
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


def without_block(lines: list[str], block: str) -> list[str]:
    """Return the lines without the first run of lines that is `block`: a traceback that is shown already."""
    wanted = block.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return lines[:start] + lines[start + len(wanted) :]
    return lines
