"""Memory between runs: keeps the snapshot file as the registry is, one write after the other.

A change is remembered before it is answered. Directories of unpacked archives that the file on
the disk refers to are kept, whoever else has finished with them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from daemon.errors import NotRemembered
from daemon.models import snapshot
from daemon.models.modelconfig import without_zero_timeouts
from daemon.models.snapshot import BrokenSnapshot, Entry, Snapshot

_log = logging.getLogger("daemon.models")


class Memory:
    """The snapshot file of one state directory.

    Attributes:
        last: what the last run left, as it was when this object was made.
        notes: sentences for whoever started the daemon.
        kept: names of unpacked directories that the file on the disk refers to; None if nobody
            knows, because the file was broken.
    """

    def __init__(self, file: Path, entries: Callable[[], Iterable[Entry]]) -> None:
        """Read the file; a broken one is set aside, and the log says so.

        Args:
            entries: what is registered now, asked for at each write.
        """
        self._file = file
        self._entries = entries
        self._lock = asyncio.Lock()
        self.last = Snapshot()
        self.notes: list[str] = []
        self.kept: frozenset[str] | None = frozenset()
        snapshot.remove_drafts(file.parent)
        self._written: bytes | None = snapshot.encode_snapshot(self.last)  # what the file has; None if nobody knows
        try:
            content = snapshot.read_content(file)
            if content is not None:  # as it is, and not as it would be written now: an earlier version may have
                self.last, self._written = snapshot.decode_snapshot(content), content
            self.kept = _directories(self.last)
        except BrokenSnapshot as error:
            self.kept = None
            self._set_aside(error)
        self.last = replace(self.last, models=tuple(map(_with_timeouts, self.last.models)))

    def keeps(self, unpacked: Path) -> bool:
        """Whether an unpacked directory will be wanted by the next run."""
        return self.kept is None or unpacked.name in self.kept

    def is_current(self) -> bool:
        """Whether nobody else has written the file. It blocks."""
        try:
            return self._file.read_bytes() == self._written
        except FileNotFoundError:
            return self._written == snapshot.encode_snapshot(Snapshot())
        except OSError:
            return False

    async def save(self) -> None:
        """Make the file say what is registered now; returns when that is on the disk.

        Raises:
            NotRemembered: it could not be written, or may not last; the file is the old one or the new one.
        """
        async with self._lock:
            now = Snapshot(models=tuple(self._entries()))
            content = snapshot.encode_snapshot(now)
            if content == self._written:
                return  # nothing has changed, or the write that this one waited for has it
            try:
                await asyncio.to_thread(snapshot.write_snapshot, self._file, content)
            except OSError as error:
                # The disk may have the old one or the new one: the next change is written in any case, even back
                # to what was, and no directory goes that either refers to.
                self._written = None
                self.kept = None if self.kept is None else self.kept | _directories(now)
                _log.error("cannot write %s: %s", self._file, error.strerror)
                raise NotRemembered(self._file, str(error.strerror)) from error
            self._written = content
            self.kept = _directories(now)

    def _set_aside(self, error: BrokenSnapshot) -> None:
        try:
            aside = snapshot.set_aside(self._file)
        except OSError as failure:
            said = f"the snapshot {self._file} is broken ({error}), and stays there: {failure.strerror}"
        else:
            said = f"the snapshot is broken, and nothing is restored; it is kept as {aside}: {error}"
        _log.error("%s", said)
        self.notes.append(f"warning: {said}")


def _with_timeouts(entry: Entry) -> Entry:
    """Drop a timeout of 0 seconds, which an earlier version accepted: the daemon's own counts then."""
    _, dropped = without_zero_timeouts(entry.request.wishes.said)
    for name in dropped:
        sentence = "%s/%s: %s was 0, which is refused now; the daemon's own counts"
        _log.warning(sentence, entry.name, entry.version, name)
    wishes = entry.request.wishes.changed(dict.fromkeys(dropped))
    return replace(entry, request=replace(entry.request, wishes=wishes))


def _directories(of: Snapshot) -> frozenset[str]:
    return frozenset(entry.unpacked for entry in of.models if entry.unpacked is not None)
