"""Registering, scaling and unregistering: the steps that take time.

    locate or download ──▶ unpack ──▶ requirements ──▶ manifest, model-config ──▶ registry.add ──▶ workers

A failure before `registry.add` leaves nothing behind. A synchronous registration whose workers
fail leaves nothing registered, and the error carries the handler's traceback; an asynchronous one
stays listed as failed, and registering the same version again replaces it.

What is answered as done is on the disk: each change writes the snapshot (memory.py) first. What
an earlier run registered is served again by `restore`, from the directory that was kept for it.
"""

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from daemon import paths
from daemon.clock import Clock
from daemon.config import Config
from daemon.errors import ArchiveNotFound, BadRequest, Conflict, DaemonError, NotRemembered, Stopping
from daemon.logs import ModelLogs
from daemon.marfile import Manifest, parse_manifest
from daemon.metrics.metrics import Metrics
from daemon.models.archive import ArchiveMark, Limits, mark_of, model_root
from daemon.models.directories import Directories
from daemon.models.directories import Progress as Progress
from daemon.models.download import archive_of, is_remote
from daemon.models.manifest import read_manifest
from daemon.models.memory import Memory
from daemon.models.model import Model, Source
from daemon.models.modelconfig import Wishes, check_workers, merge, read_yaml, without_effect
from daemon.models.registry import Registry
from daemon.models.request import Request as Request  # callers find it here
from daemon.models.requirements import Environments
from daemon.models.snapshot import Entry
from daemon.models.store import locate
from daemon.models.waiting import all_ready, until
from daemon.workers.devices import chosen_threads, usable_cores
from daemon.workers.engine import Engine
from daemon.workers.placement import Placement, count_gpus

_log = logging.getLogger("daemon.models")
_LEAVE_TIME = 6.0  # seconds that a worker without work may take to leave before it is killed


def no_progress(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


class Registration:
    """Changes the registry, one step after the other; `metrics` shows what is registered.

    Attributes:
        pending: what an earlier run registered, and this one has not come to yet.
    """

    def __init__(
        self,
        config: Config,
        registry: Registry,
        engine: Engine,
        clock: Clock,
        logs: ModelLogs,
        metrics: Metrics | None = None,
    ) -> None:
        self.memory = Memory(paths.snapshot(config.state_dir), self._entries)
        self.pending: list[Entry] = []
        self._config = config
        self._registry = registry
        self._engine = engine
        self._clock = clock
        self._logs = logs
        self._metrics = metrics or Metrics()
        self._placement = Placement(count_gpus())
        self._environments = Environments(paths.environments_dir(config.state_dir), allowed=config.install_requirements)
        limits = Limits(config.archive_bytes, config.archive_files)
        self._directories = Directories(paths.models_dir(config.state_dir), limits, self.memory.keeps)
        self._stopping = False
        self._unsettled: set[Model] = set()  # registrations that may yet fail, and leave nothing
        self._chosen: dict[str, str] = {}  # default versions that somebody chose

    def clean(self) -> None:
        """Remove unpacked archives that nothing refers to, not even the snapshot, and half downloads."""
        shutil.rmtree(paths.downloads_dir(self._config.state_dir), ignore_errors=True)
        self._directories.clean()

    async def register(self, request: Request, progress: Progress = no_progress) -> Model:
        """Register a version and start its workers.

        Raises:
            DaemonError: it cannot be served; nothing is left behind. Or NotRemembered: it is served.
        """
        model = await self.load(request, progress, before_start=self._unsettled.add)
        try:
            if request.synchronous and model.settings.min_workers:
                try:
                    await all_ready(model, progress)
                except DaemonError:
                    self._registry.discard(model)
                    if not model.stopping:  # else whoever stops it retires it
                        await self.retire(model, grace=0.0)
                    with contextlib.suppress(NotRemembered):  # it may have replaced one that had failed
                        await self.save()
                    raise
        finally:
            self._unsettled.discard(model)
        await self.save()
        return model

    async def load(
        self,
        request: Request,
        progress: Progress = no_progress,
        *,
        before_start: Callable[[Model], None] = lambda model: None,
        listed: bool = False,
        remembered: Callable[[str, str], Wishes | None] = lambda name, version: None,
    ) -> Model:
        """Register a version and begin to start its workers; neither waits for them nor remembers it.

        Args:
            listed: `--models` or `load_models` names it.
            remembered: model and version → what was asked for it in an earlier run; wins over the request's.

        Raises:
            DaemonError: it cannot be served; nothing is left behind.
        """
        add = partial(self._add, request, listed=listed, remembered=remembered)
        report = partial(progress, "downloading")
        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if path.is_dir():
                await self._install(request, model_root(path), progress)
                model = add(model_root(path), None)
            else:
                # Before it is read: a write meanwhile shows. A download is gone afterwards.
                mark = None if is_remote(request.url) else mark_of(path)
                unpacked = await self._directories.unpack(path, progress)
                try:
                    await self._install(request, model_root(unpacked), progress)
                    model = add(model_root(unpacked), unpacked, mark)
                except BaseException:
                    self._directories.release(unpacked)
                    raise
        before_start(model)
        await self._retire_replaced(model)
        _log.info("registered %s/%s from %s", model.name, model.version, request.url)
        _start(model)
        return model

    async def scale(self, model: Model, least: int, most: int, *, synchronous: bool, progress: Progress) -> None:
        """Have at least `least` and at most `most` workers; retired ones finish their batch.

        Raises:
            BadRequest: these are too many, or there is nothing to start.
            NotRemembered: it is done, and will be forgotten.
            WorkersFailed: a worker could not load the model; those that could go on serving.
        """
        check_workers(most)
        if model.lost:
            raise BadRequest(f"{model.name}/{model.version} has no files to start workers from; register it again.")
        model.scale(least, most)
        wishes = model.request.wishes
        wishes = replace(wishes, workers=least, max_workers=most, since={**wishes.since, "workers": "scale"})
        model.request = replace(model.request, wishes=wishes)
        _log.info("scaled %s/%s to %d workers", model.name, model.version, model.pool.wanted)
        await self.save()
        if synchronous:
            await all_ready(model, progress)

    async def set_default(self, name: str, version: str) -> None:
        """Choose the version that answers when a client names none.

        Raises:
            ModelNotFound, VersionNotFound: it is not registered.
            NotRemembered: it is done, and will be forgotten.
        """
        self.choose_default(name, version)
        await self.save()

    def choose_default(self, name: str, version: str) -> None:
        """As `set_default`; remembered with the next change."""
        self._registry.set_default(name, version)
        self._chosen[name] = version

    async def unregister(self, name: str, version: str | None) -> Model:
        """Take a version out of service; running requests finish within the grace time.

        Raises:
            ModelNotFound, VersionNotFound, DefaultVersionKept: it stays.
            NotRemembered: it is gone, and will be back after a restart.
        """
        model = self._registry.remove(name, version)
        _log.info("unregistered %s/%s", model.name, model.version)
        try:
            await self.save()
        finally:
            await self.retire(model, self._config.grace)
        return model

    async def replace_restored(self, name: str, version: str) -> bool:
        """Make room for a version that a list names, if what has its place comes from the snapshot."""
        model = self._registry.find(name, version)
        if not model.at_startup or model.source.listed:
            return False
        self._registry.discard(model)
        await self.retire(model, grace=0.0)
        return True

    async def retire(self, model: Model, grace: float) -> None:
        """Let a version finish, then end its workers and remove what was unpacked for it.

        Args:
            grace: seconds for everything that waits and runs.
        """
        deadline = self._clock.now() + grace
        model.stop()
        await until(model, lambda: model.idle or not model.pool.ready, grace)
        model.refuse_waiting()
        model.pool.drain(max(0.0, deadline - self._clock.now()))
        await until(model, lambda: model.pool.empty, max(0.0, deadline - self._clock.now()) + _LEAVE_TIME)
        model.pool.kill()
        await until(model, lambda: model.pool.empty, _LEAVE_TIME)
        self._logs.close(model.name, model.version)
        self._metrics.remove(model.metrics)
        if model.source.unpacked is not None:
            self._directories.release(model.source.unpacked)

    async def stop(self, grace: float) -> None:
        """Retire every version, all at once; nothing more is registered. The snapshot stays as it is."""
        self._stopping = True
        await asyncio.gather(*(self.retire(model, grace) for model in self._registry))

    async def save(self) -> None:
        """Remember what is registered.

        Raises:
            NotRemembered: it cannot be written.
        """
        before = self.memory.kept or frozenset()
        await self.memory.save()
        for name in before - (self.memory.kept or frozenset()):
            self._directories.remove_unused(self._directories.named(name))

    def restore(self, entry: Entry) -> Model:
        """Serve again what an earlier run registered, and begin to start its workers.

        Raises:
            Conflict: somebody has registered it meanwhile.
            DaemonError: its directory is not there, or cannot be served any more.
        """
        if self._registry.holds(entry.name, entry.version):
            raise Conflict(entry.name, entry.version)
        request = replace(entry.request, synchronous=False)
        if entry.unpacked is None:
            directory, unpacked = locate(request.url, self._config.model_store, local_paths=request.local_paths), None
        else:
            directory = unpacked = self._directories.named(entry.unpacked)
        if not directory.is_dir():
            raise ArchiveNotFound(f"What was unpacked from {request.url} is gone.")
        model = self._add(request, model_root(directory), unpacked, entry.archive, listed=entry.listed, of=entry)
        if unpacked is not None:
            self._directories.use(unpacked)
        _log.info("restored %s/%s from %s", model.name, model.version, request.url)
        _start(model)
        return model

    async def restore_from_archive(self, entry: Entry) -> Model:
        """As `restore`, where the kept directory is gone: unpack the archive again.

        Raises:
            DaemonError: as `restore`; or the archive is gone too, or holds something else now.
        """
        if entry.unpacked is None:
            return self.restore(entry)  # it was served in place; the directory may have come back
        request = entry.request
        nobody = partial(no_progress, "downloading")
        async with archive_of(request.url, self._config, nobody, local_paths=request.local_paths) as path:
            unpacked = await self._directories.unpack(path, no_progress)
        try:
            if unpacked.name != entry.unpacked:
                raise ArchiveNotFound(f"{request.url} has changed since it was registered; register it again.")
            await self._install(request, model_root(unpacked), no_progress)
            return self.restore(entry)
        finally:
            self._directories.release(unpacked)

    def lose(self, entry: Entry, reason: str) -> None:
        """List a version as failed that was registered, and cannot be served any more.

        Raises:
            Conflict: somebody has registered it meanwhile.
        """
        request = entry.request
        values = {"modelName": entry.name, "modelVersion": entry.version, "handler": request.handler or "unknown"}
        unpacked = None if entry.unpacked is None else self._directories.named(entry.unpacked)
        source = Source(
            request.url, unpacked or Path(request.url), unpacked, parse_manifest({"model": values}), {},
            mark=entry.archive, listed=entry.listed,
        )  # fmt: skip
        settings = merge(Wishes(), {}, self._config)
        model = Model(source, settings, self._engine, self._clock, cores=1, at_startup=True, request=request)
        model.lose(reason)
        if self._registry.holds(entry.name, entry.version):
            raise Conflict(entry.name, entry.version)
        self._registry.add(model)
        if unpacked is not None:
            self._directories.use(unpacked)

    def _entries(self) -> list[Entry]:
        """What the snapshot is to say."""
        settled = (model for model in self._registry if model not in self._unsettled)
        return [self._entry(model) for model in settled] + self.pending

    def _entry(self, model: Model) -> Entry:
        source, default = model.source, self._registry.is_default(model)
        return Entry(
            name=model.name,
            version=model.version,
            request=model.request,
            default=default,
            chosen=default and self._chosen.get(model.name) == model.version,
            unpacked=None if source.unpacked is None else source.unpacked.name,
            archive=source.mark,
            listed=source.listed,
        )

    def _add(
        self,
        request: Request,
        directory: Path,
        unpacked: Path | None,
        mark: ArchiveMark | None = None,
        *,
        listed: bool = False,
        of: Entry | None = None,
        remembered: Callable[[str, str], Wishes | None] = lambda name, version: None,
    ) -> Model:
        if self._stopping:
            raise Stopping("The daemon is being stopped.")
        manifest = self._manifest(request, directory)
        name, version = manifest.model_name, manifest.model_version
        if of is not None and (name, version) != (of.name, of.version):
            raise ArchiveNotFound(f"{request.url} now holds {name}/{version}.")
        request = replace(request, wishes=remembered(name, version) or request.wishes)
        document = read_yaml(directory, manifest.config_file)
        for key in without_effect(document):
            _log.warning("%s: `%s` in %s has no effect here", name, key, manifest.config_file)
        # As TorchServe: a listed model for which nobody names a number has a worker for each core.
        wishes = replace(request.wishes, fallback_workers=usable_cores()) if listed else request.wishes
        block = self._config.model_values(name, version)
        settings = merge(wishes, document, self._config, block, gpus=self._placement.gpus)
        python = self._environments.python(directory, manifest)
        source = Source(request.url, directory, unpacked, manifest, document, mark=mark, listed=listed, python=python)
        model = Model(
            source,
            settings,
            self._engine,
            self._clock,
            cores=usable_cores(),
            chosen_threads=chosen_threads(os.environ),
            placement=self._placement,
            log=self._logs.open(name, version),
            at_startup=listed or of is not None,
            request=request,
        )
        model.replaces = self._registry.add(model)
        self._metrics.add(model.metrics)
        return model

    def _manifest(self, request: Request, directory: Path) -> Manifest:
        return read_manifest(
            directory,
            model_name=request.model_name,
            handler=request.handler,
            runtime=request.runtime,
            default_handler=self._config.default_handler,
        )

    async def _install(self, request: Request, directory: Path, progress: Progress) -> None:
        """Make the Python environment that the archive asks for, if the operator allows it."""
        await self._environments.install(directory, self._manifest(request, directory), partial(progress, "installing"))

    async def _retire_replaced(self, model: Model) -> None:
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retire(replaced, grace=0.0)


def _start(model: Model) -> None:
    if model.settings.min_workers:
        model.scale(model.settings.min_workers, model.settings.max_workers)
