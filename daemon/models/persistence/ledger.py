"""The registrations that the snapshot keeps: which they are, and when they are written.

Each change writes the snapshot before the answer: every acknowledged change is on the disk.

Every change passes a gate, which is closed while the daemon is being replaced: two daemons that change one state
directory would undo each other's changes. Therefore no change begins while the successor loads, and every change in
progress is finished, and on the disk, before the successor starts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from tsctl.daemon.core.errors import Upgrading
from tsctl.daemon.models.archives.opening import Directories
from tsctl.daemon.models.persistence.snapshot import Snapshot, SnapshotEntry
from tsctl.daemon.models.persistence.snapshot_file import SnapshotFile
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared


class Gate:
    """Admits changes until `closed`: the daemon is being replaced."""

    def __init__(self) -> None:
        self.closed = False
        self._inside = 0
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __repr__(self) -> str:
        return f"<Gate {'closed' if self.closed else 'open'}, {self._inside} inside>"

    @contextmanager
    def change(self) -> Iterator[None]:
        """Count a change as in progress while the block runs.

        Raises:
            Upgrading: the gate is closed.
        """
        if self.closed:
            raise Upgrading
        self._inside += 1
        self._emptied.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._emptied.set()

    def open(self) -> None:
        self.closed = False

    def close(self) -> None:
        """Reject new changes; changes in progress finish."""
        self.closed = True

    async def emptied(self) -> None:
        """Wait until no change is in progress."""
        await self._emptied.wait()


class Keeping(Protocol):
    """A service, as in daemon/extension.py."""

    measures: bool

    def keep(self, *, last: bool) -> Mapping[str, Any] | None: ...

    def restore(self, kept: Any) -> None: ...


class KeptParts:
    """The parts of the services of one daemon.

    Args:
        report: called with a sentence when a part cannot be used.

    Attributes:
        services: those of extensions, in the order of their list.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self.services: Mapping[str, Keeping] = {}
        self._report = report
        self._foreign: dict[str, Any] = {}

    def restore(self, parts: Mapping[str, Any], copy_aside: Callable[[], str]) -> None:
        """Let the services take up their parts of the last snapshot, before any version is registered.

        A part whose extension this daemon does not have stays in the snapshot. One that its service cannot read is
        reported, and in a copy of the file.

        Args:
            copy_aside: copies the file, and returns where the copy is, or why there is none.
        """
        self._foreign = {name: part for name, part in parts.items() if name not in self.services}
        for name in self._foreign:
            self._report(f"the daemon has no extension `{name}`: its part of the snapshot is kept there, and not used")
        unusable = {}
        for name, service in self.services.items():
            if name in parts:
                try:
                    service.restore(parts[name])
                except Exception as error:  # noqa: BLE001 - a file is no reason not to serve
                    unusable[name] = error
        if unusable:
            where = copy_aside()
            for name, why in unusable.items():
                self._report(f"the extension `{name}` cannot use its part of the snapshot: {why}; {where}")

    @property
    def measurements(self) -> frozenset[str]:
        """The names of the parts that are measurements."""
        return frozenset(name for name, service in self.services.items() if service.measures)

    def measured(self) -> dict[str, Any]:
        """Return these parts; those that have nothing to keep are missing."""
        own = {name: self.services[name].keep(last=True) for name in self.measurements}
        return {name: part for name, part in own.items() if part is not None}

    def kept(self, *, last: bool) -> dict[str, Any]:
        """Return the parts for the next snapshot; `last` as in `Service.keep`."""
        own = {name: service.keep(last=last) for name, service in self.services.items()}
        return self._foreign | {name: part for name, part in own.items() if part is not None}


_Facts = tuple[Registration, bool, bool, Source, Declared | None, tuple[str, ...]]


class Ledger:
    """The registry as the snapshot keeps it.

    Args:
        report: as of `KeptParts`.

    Attributes:
        memory: the snapshot file.
        parts: what the services of extensions keep.
        pending: versions that an earlier run registered and that are not restored yet.
        unsettled: registrations that may still fail and leave nothing registered; they are not written.
        changed: called with `unsettled` before each write.
    """

    def __init__(
        self, registry: Registry, memory: SnapshotFile, directories: Directories, report: Callable[[str], None]
    ) -> None:
        self.memory = memory
        self.parts = KeptParts(report)
        self.pending: list[SnapshotEntry] = []
        self.unsettled: set[ModelVersion] = set()
        self.changed: Callable[[Iterable[ModelVersion]], None] = lambda unsettled: None
        self._registry = registry
        self._directories = directories
        self._chosen: dict[str, str] = {}  # default versions that were chosen by a client
        self._made: dict[ModelVersion, tuple[_Facts, SnapshotEntry]] = {}  # of the last write

    async def save(self, *, last: bool = False) -> None:
        """Write the snapshot, and remove directories that only the old one referred to.

        Args:
            last: another daemon begins with this snapshot.

        Raises:
            NotRemembered: the snapshot could not be written.
        """
        self.changed(self.unsettled)
        await self._clear_up(self.memory.save(partial(self._present, last=last)))

    def restore_parts(self) -> None:
        """Let the services of extensions take up what the last snapshot holds of them."""
        last = self.memory.last
        self.parts.restore(last.extensions, self.memory.copy_aside)
        self.memory.reserved = self._reserved(last.models)

    async def remember(self, model: ModelVersion) -> None:
        """Write the snapshot, including this version even if its registration is still in progress.

        A change of the version is about to be answered, and a restart must keep both the change and the version.
        If the registration fails after all, both are dropped.

        Raises:
            NotRemembered: the snapshot could not be written.
        """
        self.unsettled.discard(model)
        await self.save()

    async def keep_measured(self) -> None:
        """Write what services have measured; all else stays as the file has it: the daemon stops.

        A failure is logged only: the next daemon measures again.
        """
        await self._clear_up(self.memory.keep_measured(self.parts.measured()))

    async def _clear_up(self, writing: Awaitable[None]) -> None:
        """Wait for a write, and remove directories that only the old snapshot referred to."""
        before = self.memory.kept or frozenset()
        await writing
        for name in before - (self.memory.kept or frozenset()):
            self._directories.remove_unused(self._directories.named(name))

    def choose_default(self, name: str, version: str) -> None:
        """Choose the version that answers when a client names none; the next change writes the choice.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
        """
        self._registry.set_default(name, version)
        self._chosen[name] = version

    def hand_over(self) -> list[SnapshotEntry]:
        """Return the ephemeral versions, which the snapshot does not hold, for the daemon that replaces this one.

        Their unpacked directories are not removed from now on; `take_back` undoes that.
        """
        ephemeral = [self._entry(model) for model in self._registry if model.request.ephemeral and not model.lost]
        self.memory.handed = frozenset(entry.unpacked for entry in ephemeral if entry.unpacked is not None)
        return ephemeral

    def take_back(self) -> None:
        """Note that no other daemon uses the ephemeral versions: an upgrade has failed."""
        self.memory.handed = frozenset()

    def _present(self, *, last: bool) -> tuple[Snapshot, frozenset[str]]:
        models, routes = tuple(self._entries()), dict(self._registry.routes.by_model)
        self.memory.measurements = self.parts.measurements
        now = Snapshot(models=models, routes=routes, extensions=self.parts.kept(last=last))
        return now, self._reserved(models)

    def _reserved(self, models: Iterable[SnapshotEntry]) -> frozenset[str]:
        reservations = self._registry.reservations
        return frozenset(each.name for each in models if each.name in reservations)

    def _entries(self) -> list[SnapshotEntry]:
        """Return the entries; one that has not changed is the same object, which spares comparing and encoding it."""
        before, self._made = self._made, {}
        for model in self._registry:
            if model not in self.unsettled and not model.request.ephemeral:
                facts, known = self._facts(model), before.get(model)
                self._made[model] = known if known and known[0] == facts else (facts, self._entry(model))
        entries = [entry for _, entry in self._made.values()]
        return entries + [each for each in self.pending if not each.request.ephemeral]

    def _facts(self, model: ModelVersion) -> _Facts:
        """Return all that an entry is made of; most are the same objects as before, so that comparing is quick."""
        default = self._registry.is_default(model)
        chosen = default and self._chosen.get(model.name) == model.version
        return model.request, default, chosen, model.source, model.declared, tuple(model.notes)

    def _entry(self, model: ModelVersion) -> SnapshotEntry:
        request, default, chosen, source, declared, notes = self._facts(model)
        return SnapshotEntry(
            name=model.name,
            version=model.version,
            request=request,
            default=default,
            chosen=chosen,
            unpacked=None if source.unpacked is None else source.unpacked.name,
            archive=source.mark,
            listed=source.listed,
            declared=declared,
            notes=notes,
        )
