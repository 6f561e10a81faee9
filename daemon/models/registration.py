"""Registering, scaling and unregistering: the steps that take time.

    locate or download ──▶ unpack ──▶ requirements ──▶ manifest, model-config ──▶ registry.add ──▶ workers

A failure before `registry.add` leaves nothing behind. A synchronous registration whose workers
fail leaves nothing registered, and the error carries the handler's traceback; an asynchronous one
stays listed as failed, and registering the same version again replaces it.

What is answered as done is on the disk: each change writes the snapshot (memory.py) first. What
an earlier run registered is served again by restoring.py.
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from daemon import paths
from daemon.clock import Clock
from daemon.config import Config
from daemon.errors import BadRequest, CleaningTimedOut, DaemonError, NotRemembered, Stopping
from daemon.logs import ModelLogs
from daemon.metrics.metrics import Metrics
from daemon.models.archive import ArchiveMark, Limits, mark_of, model_root
from daemon.models.directories import Directories
from daemon.models.directories import Progress as Progress
from daemon.models.download import archive_of, is_remote
from daemon.models.making import Maker
from daemon.models.memory import Memory
from daemon.models.model import Model
from daemon.models.modelconfig import Wishes, check_workers
from daemon.models.registry import Registry
from daemon.models.request import Request as Request  # callers find it here
from daemon.models.snapshot import Entry
from daemon.models.waiting import all_ready, until
from daemon.workers.engine import Engine

_log = logging.getLogger("daemon.models")
_LEAVE_TIME = 6.0  # seconds that a worker without work may take to leave before it is killed


def no_progress(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


class Registration:
    """Changes the registry, one step after the other; `metrics` shows what is registered.

    Attributes:
        pending: what an earlier run registered, and this one has not come to yet.
        maker: makes the models.
        directories: the unpacked archives.
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
        self.maker = Maker(config, engine, clock, logs)
        limits = Limits(config.archive_bytes, config.archive_files)
        self.directories = Directories(paths.models_dir(config.state_dir), limits, self.memory.keeps)
        self._config = config
        self._registry = registry
        self._clock = clock
        self._logs = logs
        self._metrics = metrics or Metrics()
        self._stopping = False
        self._retiring: dict[Model, None] = {}
        self._unsettled: set[Model] = set()  # registrations that may yet fail, and leave nothing
        self._chosen: dict[str, str] = {}  # default versions that somebody chose

    def clean(self) -> None:
        """Remove unpacked archives that nothing refers to, not even the snapshot, and half downloads."""
        shutil.rmtree(paths.downloads_dir(self._config.state_dir), ignore_errors=True)
        self.directories.clean()

    async def register(self, request: Request, progress: Progress = no_progress) -> Model:
        """Register a version and start its workers.

        Raises:
            DaemonError: it cannot be served; nothing is left behind. Or NotRemembered: it is served.
        """
        model = await self.load(request, progress, before_start=self._unsettled.add)
        try:
            if request.synchronous and model.settings.min_workers:
                try:
                    await all_ready(model, model.pool.wanted, progress)
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
        report = partial(progress, "downloading")

        async def add(directory: Path, unpacked: Path | None, mark: ArchiveMark | None) -> Model:
            manifest = self.maker.manifest(request, directory)
            await self.maker.install(manifest, directory, progress)
            wishes = remembered(manifest.model_name, manifest.model_version) or request.wishes
            asked = replace(request, wishes=wishes)
            model = self.maker.make(asked, manifest, directory, unpacked, mark, listed=listed)
            self.add(model)
            return model

        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if path.is_dir():
                model = await add(model_root(path), None, None)
            else:
                # Before it is read: a write meanwhile shows. A download is gone afterwards.
                mark = None if is_remote(request.url) else mark_of(path)
                unpacked = await self.directories.unpack(path, progress)
                try:
                    model = await add(model_root(unpacked), unpacked, mark)
                except BaseException:
                    self.directories.release(unpacked)
                    raise
        before_start(model)
        await self._retire_replaced(model)
        _log.info("registered %s/%s from %s", model.name, model.version, request.url)
        model.start()
        return model

    def add(self, model: Model) -> None:
        """Put a model into the registry; from now on it is asked and measured.

        Raises:
            Stopping: nothing more is registered.
            Conflict: its version is registered, and has not failed.
        """
        if self._stopping:
            raise Stopping("The daemon is being stopped.")
        model.replaces = self._registry.add(model)
        self._metrics.add(model.metrics)

    async def scale(self, model: Model, least: int, most: int, *, synchronous: bool, progress: Progress) -> None:
        """Have at least `least` and at most `most` workers; retired ones finish their batch.

        Raises:
            BadRequest: these are too many, or there is nothing to start.
            Stopping: it is being stopped.
            NotRemembered: it is done, and will be forgotten.
            WorkersFailed: a worker could not load the model; those that could go on serving.
        """
        check_workers(most)
        if model.stopping:
            raise Stopping(f'Model "{model.name}" version {model.version} is being stopped.')
        if model.lost:
            raise BadRequest(f"{model.name}/{model.version} has no files to start workers from; register it again.")
        model.scale(least, most)
        wanted = model.pool.wanted
        wishes = model.request.wishes
        wishes = replace(wishes, workers=least, max_workers=most, since={**wishes.since, "workers": "scale"})
        model.request = replace(model.request, wishes=wishes)
        _log.info("scaled %s/%s to %d workers", model.name, model.version, model.pool.wanted)
        await self.save()
        if synchronous:
            await all_ready(model, wanted, progress)

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
            CleaningTimedOut: it is gone, but for a worker that cannot be ended.
        """
        model = self._registry.remove(name, version)
        _log.info("unregistered %s/%s", model.name, model.version)
        try:
            await self.save()
        finally:
            await self.retire(model, self._config.grace)
        if not model.pool.empty:
            raise CleaningTimedOut(model.name)
        return model

    async def retire(self, model: Model, grace: float) -> None:
        """Let a version finish, then end its workers and remove what was unpacked for it.

        Args:
            grace: seconds for everything that waits and runs.
        """
        deadline = self._clock.now() + grace
        self._retiring[model] = None
        model.stop()
        await until(model, lambda: model.idle or not model.pool.ready, grace)
        model.refuse_waiting()
        model.pool.drain(max(0.0, deadline - self._clock.now()))
        await until(model, lambda: model.pool.empty, max(0.0, deadline - self._clock.now()) + _LEAVE_TIME)
        model.pool.kill()
        await until(model, lambda: model.pool.empty, _LEAVE_TIME)
        if model.pool.empty:
            model.close()
        if model not in self._retiring:
            return  # a stop came upon an unregistration, and one of them was done before
        del self._retiring[model]
        self._logs.close(model.name, model.version)
        self._metrics.remove(model.metrics)
        if model.source.unpacked is not None:
            self.directories.release(model.source.unpacked)

    async def stop(self, grace: float) -> None:
        """Retire every version, all at once; nothing more is registered. The snapshot stays as it is.

        Those that are being retired already, too: who does that may have been cancelled, or have more time.
        """
        self._stopping = True
        models = dict.fromkeys((*self._registry, *self._retiring))
        await asyncio.gather(*(self.retire(model, grace) for model in models))

    async def save(self) -> None:
        """Remember what is registered.

        Raises:
            NotRemembered: it cannot be written.
        """
        before = self.memory.kept or frozenset()
        await self.memory.save()
        for name in before - (self.memory.kept or frozenset()):
            self.directories.remove_unused(self.directories.named(name))

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

    async def _retire_replaced(self, model: Model) -> None:
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retire(replaced, grace=0.0)
