"""The snapshot file, kept equal to the registry, one write after the other.

A change is on the disk before the answer is sent. Directories of unpacked archives are kept as long as the file
on the disk refers to them.

Each change of a model keeps the state before, which can be brought back:

    registered, replaced, set, another default or route, unregistered    a change: the state before is kept
    scaled, described by a worker, restored                              none: the versions and settings stay
    what a service does while it has a reservation of the model          one change, which begins with its first step

The snapshot holds that state, so that it survives restarts and upgrades; and its unpacked archives are kept as long as
the model is registered, because the archive's file may have been overwritten since. One state is kept for each model.
Commands with one token in common are one change.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from tsctl.daemon.core.errors import NotRemembered
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, EarlierModel, Snapshot, SnapshotEntry
from tsctl.daemon.models.settings import Overrides

MOST_TOKEN = 100  # characters
MOST = 1000  # states; the oldest go first
CHANGE: ContextVar[str] = ContextVar("CHANGE", default="")  # the token of the command that is being executed
_WORKERS = ("workers", "max_workers", "fallback_workers", "fallback_batch_size")


@contextmanager
def one_change(token: str) -> Iterator[None]:
    """Name the change that the block is a part of; a longer token is cut."""
    reset = CHANGE.set(token[:MOST_TOKEN])
    try:
        yield
    finally:
        CHANGE.reset(reset)


def earlier_after(
    saved: Snapshot, now: Snapshot, *, change: str, time: float, reserved: Set[str] = frozenset()
) -> tuple[EarlierModel, ...]:
    """Return the states to keep, once the registered versions and the routes are these.

    Args:
        saved: the snapshot before.
        now: the versions and routes now.
        change: the token of the change; empty for a change of its own.
        time: now, seconds since the epoch.
        reserved: the models that were reserved in the snapshot before.
    """
    before, after = _by_name(saved.models), _by_name(now.models)
    kept = {each.name: each for each in saved.earlier}
    for name, versions in before.items():
        route, others = saved.routes.get(name), after.get(name, [])
        same = versions == others or _compared(versions) == _compared(others)  # most are the very same objects
        if (same and route == now.routes.get(name)) or name in reserved:
            continue
        known = kept.pop(name, None)
        if known is None or not change or known.change != change:
            known = EarlierModel(
                name=name, change=change, time=time, versions=tuple(map(_without_learned, versions)), route=route
            )
        kept[name] = known
    return tuple(list(kept.values())[-MOST:])


def _by_name(entries: Sequence[SnapshotEntry]) -> dict[str, list[SnapshotEntry]]:
    found: dict[str, list[SnapshotEntry]] = {}
    for entry in entries:
        found.setdefault(entry.name, []).append(entry)
    return found


def _compared(entries: Sequence[SnapshotEntry]) -> dict[str, SnapshotEntry]:
    return {entry.version: _without_workers(entry) for entry in entries}


def _without_learned(entry: SnapshotEntry) -> SnapshotEntry:
    """Return the entry without the members that come from its workers: new workers tell them again."""
    return replace(entry, declared=None, notes=())


def _without_workers(entry: SnapshotEntry) -> SnapshotEntry:
    """Return the entry without the members whose change is none."""
    asked = Overrides(**{name: value for name, value in entry.request.overrides.said.items() if name not in _WORKERS})
    request = replace(entry.request, overrides=asked, synchronous=True, sha256="", model_version=None, held=False)
    return replace(_without_learned(entry), request=request, archive=None, chosen=False, listed=False)


_STEP = b"\n  "  # of the indentation


class SnapshotEncoder:
    """The content of the snapshot file: JSON, indented for human readers; a part that has not changed is encoded once.

    Entries and earlier models are frozen, so each keeps its text as long as the snapshot has the same object. With 500
    registered versions, of which one changes, a write encodes one entry and joins 500 texts.
    """

    def __init__(self) -> None:
        self._texts: dict[
            int, tuple[object, bytes]
        ] = {}  # by identity; the object is held, so that its id stays its own

    def encode(self, snapshot: Snapshot) -> bytes:
        """Return the file's content."""
        before, self._texts = self._texts, {}
        members = {
            b"version": b"%d" % snapshot.version,
            b"models": self._list(snapshot.models, before),
            b"earlier": self._list(snapshot.earlier, before),
            b"routes": _indented(_text(snapshot.routes), _STEP),
            b"extensions": _indented(_text(dict(sorted(snapshot.extensions.items()))), _STEP),
        }
        return b"{\n  " + b",\n  ".join([b'"%b": %b' % member for member in members.items()]) + b"\n}\n"

    def _list(self, parts: Iterable[SnapshotEntry | EarlierModel], before: dict[int, tuple[object, bytes]]) -> bytes:
        texts = []
        for part in parts:
            known = before.get(id(part)) or (part, _part_text(part))
            self._texts[id(part)] = known
            texts.append(known[1])
        return b"[\n    " + b",\n    ".join(texts) + b"\n  ]" if texts else b"[]"


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the file's content."""
    return SnapshotEncoder().encode(snapshot)


def _part_text(part: SnapshotEntry | EarlierModel) -> bytes:
    """Return the text of a member of a list, whose first line is indented already."""
    return _indented(_text(msgspec.to_builtins(part, enc_hook=_overrides)), b"\n    ")


def _text(document: Any) -> bytes:
    return msgspec.json.format(json_bytes(document), indent=2)


def _indented(text: bytes, line: bytes) -> bytes:
    """Indent all lines but the first; a string of JSON has no line feed of its own."""
    return text.replace(b"\n", line)


def _overrides(overrides: Overrides) -> dict[str, Any]:
    return {**overrides.said, "since": overrides.since}


_log = logging.getLogger("tsctl.daemon.models")


class SnapshotFile:
    """The snapshot file of one state directory.

    Args:
        report: called with a kind of event and a sentence: a change could not be written, or the file is broken.

    Attributes:
        last: the snapshot of the last run, read when this object was made.
        notes: sentences for the operator, printed at the start.
        kept: names of unpacked directories that the file on the disk refers to; None if that is unknown,
            because the file was broken.
        handed: names of unpacked directories of versions that the file does not hold, and another daemon takes over.
        measurements: the names of the parts of extensions whose changes alone are none.
        reserved: the models that were reserved when the file was written: what changes of them is part of one change.
    """

    def __init__(self, file: Path, report: Callable[[str, str], object]) -> None:
        """Read the file; a broken one is renamed, and reported."""
        self._file = file
        self._report = report
        self._lock = asyncio.Lock()
        self.last = Snapshot()
        self.notes: list[str] = []
        self.kept: frozenset[str] | None = frozenset()
        self.handed: frozenset[str] = frozenset()
        self.reserved: frozenset[str] = frozenset()
        self.measurements: frozenset[str] = frozenset()
        snapshot.remove_drafts(file.parent)
        self._encoder = SnapshotEncoder()
        self._written: bytes | None = self._encoder.encode(self.last)  # the file's content; None if unknown
        try:
            content = snapshot.read_content(file)
            if content is not None:  # the bytes read, because an earlier version may have encoded them differently
                self.last, self._written = snapshot.decode_snapshot(content), content
            self.kept = self.last.directories
        except BrokenSnapshot as error:
            self.kept = None
            self._set_aside(error)
        self._saved = self.last

    def keeps(self, unpacked: Path) -> bool:
        """Return whether the next run needs an unpacked directory."""
        return self.kept is None or unpacked.name in self.kept or unpacked.name in self.handed

    @property
    def earlier(self) -> Sequence[EarlierModel]:
        """Return the models before their latest changes, as the file on the disk has them."""
        return self._saved.earlier

    def discard(self, name: str, version: str) -> None:
        """Note that a version could not be started: the state with it is no earlier state of its model."""
        others = (entry for entry in self._saved.models if (entry.name, entry.version) != (name, version))
        self._saved = replace(self._saved, models=tuple(others))

    def copy_aside(self) -> str:
        """Copy the file as it was read; return where the copy is, or why there is none."""
        if self._written is None:
            return "there is no copy of the file"
        try:
            return f"the file is kept as {snapshot.copy_aside(self._file, self._written)}"
        except OSError as failure:
            return f"the file cannot be copied: {failure.strerror}"

    def is_current(self) -> bool:
        """Return whether the file still is as this object wrote or read it. Blocks."""
        try:
            return self._file.read_bytes() == self._written
        except FileNotFoundError:
            return self._written == encode_snapshot(Snapshot())
        except OSError:
            return False

    async def save(self, present: Callable[[], tuple[Snapshot, frozenset[str]]]) -> None:
        """Write the present state to the file; return when it is on the disk.

        Other measurements are written with any other change, and by `keep_measured`, but are none alone: a daemon that
        has started would write the file anew for them.

        Args:
            present: returns the state to write, without earlier ones, and the reserved models; called when the
                previous write is done.

        Raises:
            NotRemembered: the file could not be written or fsynced; the disk has the old one or the new one.
        """
        async with self._lock:
            now, reserved = present()
            earlier = earlier_after(self._saved, now, change=CHANGE.get(), time=time.time(), reserved=self.reserved)
            now = replace(now, earlier=earlier)
            if self._encoder.encode(replace(now, extensions=self._but_measured(now))) == self._written:
                return  # nothing has changed, or the previous write contained the change
            content = self._encoder.encode(now)
            try:
                await self._write(now, content)
            except OSError as error:
                lost = f"a change was applied, and will be lost: cannot write {self._file}: {error.strerror}"
                self._report("not-remembered", lost)
                raise NotRemembered(self._file, str(error.strerror)) from error
            self.reserved = reserved

    async def keep_measured(self, measured: Mapping[str, Any]) -> None:
        """Write these parts of extensions; all else stays as it is."""
        async with self._lock:
            if self._written is None:  # the disk may have a later state than this object
                return
            now = replace(self._saved, extensions={**self._saved.extensions, **measured})
            if now.extensions == self._saved.extensions:
                return
            try:
                await self._write(now, self._encoder.encode(now))
            except OSError as error:
                _log.warning("what was measured is forgotten: cannot write %s: %s", self._file, error.strerror)

    def _but_measured(self, now: Snapshot) -> dict[str, Any]:
        """Return the parts of extensions with the measurements that the file holds."""
        others = {name: part for name, part in now.extensions.items() if name not in self.measurements}
        return others | {name: part for name, part in self._saved.extensions.items() if name in self.measurements}

    async def _write(self, now: Snapshot, content: bytes) -> None:
        try:
            await asyncio.to_thread(snapshot.write_snapshot, self._file, content)
        except OSError:
            # The disk may have the old file or the new one: the next change is written in any case, even if it
            # restores the old state, and directories of both are kept.
            self._written = None
            self.kept = None if self.kept is None else self.kept | now.directories
            raise
        self._written = content
        self._saved, self.kept = now, now.directories

    def _set_aside(self, error: BrokenSnapshot) -> None:
        try:
            aside = snapshot.set_aside(self._file)
        except OSError as failure:
            said = f"the snapshot {self._file} is broken ({error}), and cannot be renamed: {failure.strerror}"
        else:
            said = f"the snapshot is broken, so no model is restored: register them again; kept as {aside}: {error}"
        self._report("snapshot-broken", said)
        self.notes.append(f"warning: {said}")
