"""Bring up the versions of a start: those of an earlier run from the directories that were kept, or from archives."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import ArchiveNotFound, Conflict, InvalidModel
from tsctl.daemon.models.archives.digests import holds_its_files, is_sealed
from tsctl.daemon.models.archives.download import archive_of, locate
from tsctl.daemon.models.archives.opening import directory_in_place, is_in_place
from tsctl.daemon.models.archives.unpack import model_root
from tsctl.daemon.models.build import ArchiveTexts
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.registrar import Registrar, no_progress
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion


class _Found(NamedTuple):
    """The place of a version's files; `unpacked` as in `Source`."""

    request: Registration
    root: Path
    unpacked: Path | None


class Restoring:
    """Registers the snapshot's versions, one after the other."""

    def __init__(self, config: Config, registry: Registry, registrar: Registrar) -> None:
        self._config = config
        self._registry = registry
        self._registrar = registrar
        self._factory = registrar.factory
        self._directories = registrar.directories

    def restore(self, entry: SnapshotEntry) -> ModelVersion:
        """Register a version of an earlier run again, and begin to start its workers.

        Raises:
            Conflict: a client has registered the version meanwhile.
            DaemonError: the version's directory is gone, has files that may not be those of its pin, or can no longer
                be served.
        """
        found = self._find(entry)
        if entry.request.sha256 and found.unpacked is not None and not is_sealed(found.unpacked):
            raise InvalidModel(
                f"The files unpacked from {entry.request.url}, which has a pinned SHA-256, may have been written to."
            )
        return self._serve(entry, found, self._factory.read_texts(found.request, found.root))

    async def _restore(self, entry: SnapshotEntry) -> ModelVersion:
        """Do as `restore`, and let others run meanwhile."""
        found = self._find(entry)
        return self._serve(entry, found, await self._factory.read(found.request, found.root))

    def _find(self, entry: SnapshotEntry) -> _Found:
        """Find the directory of a version; errors as in `restore`."""
        if self._registry.holds(entry.name, entry.version):
            raise Conflict(entry.name, entry.version)
        request = replace(entry.request, synchronous=False)
        if entry.unpacked is None:
            path, unpacked = locate(request.url, self._config.model_store, local_paths=request.local_paths), None
        else:
            path = unpacked = self._directories.named(entry.unpacked)
        if not is_in_place(path) or not path.exists():
            raise ArchiveNotFound(f"The files unpacked from {request.url} are gone.")
        return _Found(request, directory_in_place(path), unpacked)

    def _serve(self, entry: SnapshotEntry, found: _Found, texts: ArchiveTexts) -> ModelVersion:
        """Register a version, and begin to start its workers; errors as in `restore`."""
        request, root, unpacked = found
        name, version = texts.manifest.model_name, texts.manifest.model_version
        if (name, version) != (entry.name, entry.version):
            raise ArchiveNotFound(f"{request.url} now contains {name}/{version}.")
        if self._registry.holds(name, version):
            raise Conflict(name, version)
        model = self._factory.build(
            request, texts, root, unpacked, entry.archive, listed=entry.listed, restored=True,
            declared=entry.declared, notes=entry.notes,
        )  # fmt: skip
        self._registrar.live.add(model)
        if unpacked is not None:
            self._directories.use(unpacked)
        model.reports.add("registered", f"restored from {request.url}")
        model.start()
        self._registrar.owners.watch(request)
        return model

    async def restore_from_archive(self, entry: SnapshotEntry) -> ModelVersion:
        """Unpack the archive of a version whose kept directory cannot be served, and restore the version.

        A directory that is there is served if each file is as it was unpacked.

        Raises:
            Conflict: a client has registered the version meanwhile.
            DaemonError: the archive is gone, has changed, or can no longer be served.
        """
        if entry.unpacked is None:
            return await self._restore(entry)  # the version was served in place; the directory may have come back
        request = entry.request
        kept = self._directories.named(entry.unpacked)
        if request.sha256 and kept.is_dir() and await asyncio.to_thread(holds_its_files, kept):
            return await self._restore(entry)
        nobody, fetchers = partial(no_progress, "downloading"), self._registrar.archives.fetchers
        async with archive_of(request.url, self._config, fetchers, nobody, local_paths=request.local_paths) as path:
            unpacked = await self._directories.unpack(path, no_progress, request.sha256)
        try:
            if unpacked.name != entry.unpacked:
                raise ArchiveNotFound(f"{request.url} has changed since it was registered; register it again.")
            root = model_root(unpacked)
            manifest = (await self._factory.read(request, root)).manifest
            await self._factory.install(manifest, root, no_progress)
            return await self._restore(replace(entry, unpacked=unpacked.name))
        finally:
            self._directories.release(unpacked)

    async def load(self, request: Registration, remembered: Callable[[str, str], Overrides | None]) -> ModelVersion:
        """Register a version that a list names, and begin to start its workers.

        Args:
            remembered: model and version → the overrides of an earlier run, which win over the request's.

        Raises:
            DaemonError: the model cannot be served; nothing is left behind.
        """
        async with self._registrar.archives.open(request, no_progress) as contents:
            texts = await self._factory.read(request, contents.directory)
            manifest = texts.manifest
            await self._factory.install(manifest, contents.directory, no_progress)
            overrides = remembered(manifest.model_name, manifest.model_version) or request.overrides
            model = self._factory.build(replace(request, overrides=overrides), texts, *contents, listed=True)
            self._registrar.live.add(model)
        await self._registrar.start_workers(model)
        return model

    def lose(self, entry: SnapshotEntry, reason: str) -> None:
        """Register a version that can no longer be served as failed.

        Raises:
            Conflict: a client has registered the version meanwhile.
        """
        unpacked = None if entry.unpacked is None else self._directories.named(entry.unpacked)
        model = self._factory.make_lost(entry, unpacked, reason)
        if self._registry.holds(entry.name, entry.version):
            raise Conflict(entry.name, entry.version)
        self._registry.add(model)
        if unpacked is not None:
            self._directories.use(unpacked)

    async def make_room(self, name: str, version: str) -> bool:
        """Retire a version to make room for a listed one, if the snapshot restored it; return whether that is so."""
        model = self._registry.find(name, version)
        if not model.at_startup or model.source.listed:
            return False
        self._registry.discard(model)
        await self._registrar.retiring.retire(model, grace=0.0)
        return True
