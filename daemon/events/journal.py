"""The file of events: JSON, a line each, appended by one daemon, and during an upgrade by two.

    lock ──▶ read the lines of the other daemon ──▶ number the own event ──▶ append ──▶ unlock

So the numbers rise over both. A full file is renamed, and a new one begun; the other daemon notices by its inode. A
line that was torn, by a crash or a full disk, is skipped. Nothing is fsynced: a killed daemon loses no event, a
machine that stops may lose the last ones.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.events.event import Event

MOST_BYTES = 4 * 1024 * 1024  # of one file; two are kept
_ATTEMPTS = 20  # to lock, a millisecond apart: the other daemon holds the lock for some 20 µs at a time
_MODE = 0o600  # whatever the umask: an event may hold a client's data

_DECODER = msgspec.json.Decoder(Event)


class Journal:
    """The file of events of one state directory. Where it cannot be written, that is tried again each time.

    Args:
        most_bytes: at which the file is renamed to `FILE.1`, in place of the one before.

    Attributes:
        error: why the last write failed, with the file's name; empty if it did not.
    """

    def __init__(self, file: Path, most_bytes: int = MOST_BYTES) -> None:
        self.error = ""
        self._file = file
        self._older = file.with_name(f"{file.name}.1")
        self._lock_file = file.with_name(f"{file.name}.lock")
        self._most_bytes = most_bytes
        self._descriptor: int | None = None
        self._lock: int | None = None
        self._read = 0  # bytes of the open file that were read, or written by this object

    def __repr__(self) -> str:
        return f"<Journal {self._file} read to byte {self._read}>"

    def read_last(self, most: int) -> list[Event]:
        """Return the last events of both files, the oldest first; to be called once, before anything else."""
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            self._open()
            lines = self._rest()
        if len(lines) < most:
            with contextlib.suppress(OSError):
                lines = self._older.read_bytes().splitlines() + lines
        return decoded(lines[max(0, len(lines) - most) :])  # not all 40 000: 2 ms instead of 70

    def news(self) -> list[Event]:
        """Return the events that another daemon has added since the last call."""
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            if self._descriptor is not None:
                lines = self._rest()
            if not self._is_current():
                self._open()
                lines += self._rest()
        return decoded(lines)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep the other daemon from writing. A lock that cannot be had is not waited for: two numbers may be equal."""
        locked = False
        try:
            locked = self._take_lock()
            yield
        finally:
            if locked and self._lock is not None:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def write(self, events: Sequence[Event]) -> bool:
        """Append events, after the news were read; return whether they are in the file: all of them, or none."""
        data = b"".join([json_bytes(event) + b"\n" for event in events])
        try:
            if not self._is_current():
                self._open()
            if self._read and self._read + len(data) > self._most_bytes:
                os.replace(self._file, self._older)
                self._open()
            assert self._descriptor is not None
            if os.write(self._descriptor, data) == len(data):
                self._read += len(data)
                self.error = ""
                return True
            os.ftruncate(self._descriptor, self._read)  # only a part had room on the disk
            reason: str | None = os.strerror(errno.ENOSPC)
        except OSError as error:
            reason = error.strerror
        self.error = f"cannot write `{self._file}`: {reason}"
        return False

    def close(self) -> None:
        """Close the files; they are opened again if needed."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._descriptor = self._lock = None

    def _take_lock(self) -> bool:
        try:
            if self._lock is None:
                self._lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
            for _ in range(_ATTEMPTS):
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.001)
                else:
                    return True
        except OSError:
            pass
        return False

    def _is_current(self) -> bool:
        """Return whether the open file is the one at the path."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.stat(self._file), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._read = opened, 0

    def _rest(self) -> list[bytes]:
        """Return the lines behind those that were read; one that is not complete yet is left for the next time."""
        assert self._descriptor is not None
        length = os.fstat(self._descriptor).st_size - self._read
        if length <= 0:
            self._read += min(0, length)  # a part of a line was taken back
            return []
        data = os.pread(self._descriptor, length, self._read)
        data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        return data.splitlines()


def decoded(lines: Sequence[bytes]) -> list[Event]:
    """Return the events of these lines, without those that cannot be read."""
    events = []
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            events.append(_DECODER.decode(line))
    return events
