"""Register, scale and unregister model versions: the steps that take time.

    locate or download ──▶ unpack ──▶ requirements ──▶ manifest, model-config ──▶ registry.add ──▶ workers

If a running version is replaced, the last two steps are those of replace.py.

A failure before `registry.add` leaves nothing behind. A synchronous registration whose workers
fail leaves nothing registered, and the error carries the handler's traceback; an asynchronous one
stays listed as failed, and registering the same version again replaces it.

Each change writes the snapshot (persistence/snapshot_file.py) before the answer: every acknowledged change is on the
disk. persistence/restore.py serves the registrations of an earlier run again.
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from daemon import paths
from daemon.config.config import Config
from daemon.core.clock import Clock
from daemon.core.errors import BadRequest, CleaningTimedOut, Conflict, DaemonError, NotFailed, NotRemembered, Stopping
from daemon.core.logs import ModelLogs
from daemon.marfile import Manifest
from daemon.metrics.metrics import Metrics
from daemon.models.archives.directories import Directories
from daemon.models.archives.directories import Progress as Progress
from daemon.models.archives.download import archive_of, is_remote
from daemon.models.archives.unpack import ArchiveMark, Limits, mark_of, model_root
from daemon.models.build import Maker
from daemon.models.gate import Gate
from daemon.models.persistence.snapshot import Entry
from daemon.models.persistence.snapshot_file import Memory
from daemon.models.registry import Registry
from daemon.models.replace import Replacing, as_replacement, check_unclaimed
from daemon.models.request import Request as Request  # re-exported for callers
from daemon.models.retirement import Retiring
from daemon.models.settings import Wishes, check_workers
from daemon.models.version import Model
from daemon.models.wait import all_ready
from daemon.workers.engine import Engine

_log = logging.getLogger("daemon.models")


class Contents(NamedTuple):
    """The directory of a model's files; `unpacked` and `mark` as in `Source`."""

    directory: Path
    unpacked: Path | None = None
    mark: ArchiveMark | None = None


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress."""


class Registration:
    """Changes the registry, one step after the other; `metrics` shows the registered versions.

    Attributes:
        pending: versions that an earlier run registered and that are not restored yet.
        gate: every change from outside passes the gate.
        maker: builds the models.
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
        self.gate = Gate()
        self.maker = Maker(config, engine, clock, logs)
        limits = Limits(config.archive_bytes, config.archive_files)
        self.directories = Directories(paths.models_dir(config.state_dir), limits, self.memory.keeps)
        self._config = config
        self._registry = registry
        self._metrics = metrics or Metrics()
        self._retiring = Retiring(clock, logs, self._metrics, self.directories, self._present)
        self._replacing = Replacing(registry, self._metrics, self.retire, self.save, self.gate.change)
        self._stopping = False
        self._unsettled: set[Model] = set()  # registrations that may still fail and leave nothing registered
        self._chosen: dict[str, str] = {}  # default versions that were chosen by a client

    def clean(self) -> None:
        """Remove partial downloads, and unpacked archives that neither a model nor the snapshot refers to."""
        shutil.rmtree(paths.downloads_dir(self._config.state_dir), ignore_errors=True)
        self.directories.clean()

    async def register(self, request: Request, progress: Progress = no_progress, *, replace: bool = False) -> Model:
        """Register a version and start its workers.

        Args:
            replace: if the version is registered, the old one serves until the new one is ready.

        Raises:
            DaemonError: the model cannot be served; nothing is left behind.
            NotRemembered: the model is served, but the snapshot could not be written.
        """

        def make(manifest: Manifest, contents: Contents) -> Model:
            old = self._replaceable(manifest.model_name, manifest.model_version) if replace else None
            model = self._make(request if old is None else as_replacement(request, old), manifest, contents)
            if old is None:
                self.add(model)
                self._unsettled.add(model)
            else:
                self._replacing.begin(old, model)
            return model

        model = await self._fetch(request, progress, make)
        if model in self._replacing.loading:
            at_once = not model.settings.workers  # no worker to wait for; the answer says that the replacement is done
            await self._replacing.finish(model, progress, synchronous=request.synchronous or at_once)
            return model
        await self._start(model)
        try:
            if request.synchronous and model.settings.workers:
                try:
                    await all_ready(model, model.pool.wanted, progress)
                except DaemonError:
                    self._registry.discard(model)
                    if not model.stopping:  # else `stop` retires the model
                        await self.retire(model, grace=0.0)
                    with contextlib.suppress(NotRemembered):  # the model may have replaced a failed version
                        await self.save()
                    raise
        finally:
            self._unsettled.discard(model)
        await self.save()
        return model

    async def load(
        self,
        request: Request,
        *,
        listed: bool = False,
        remembered: Callable[[str, str], Wishes | None] = lambda name, version: None,
    ) -> Model:
        """Register a version and begin to start its workers; neither wait for them nor write the snapshot.

        Args:
            listed: whether `--models` or `load_models` names the archive.
            remembered: model and version → the wishes of an earlier run, which win over the request's.

        Raises:
            DaemonError: the model cannot be served; nothing is left behind.
        """

        def make(manifest: Manifest, contents: Contents) -> Model:
            wishes = remembered(manifest.model_name, manifest.model_version) or request.wishes
            model = self._make(replace(request, wishes=wishes), manifest, contents, listed=listed)
            self.add(model)
            return model

        model = await self._fetch(request, no_progress, make)
        await self._start(model)
        return model

    def add(self, model: Model) -> None:
        """Put a model into the registry: requests and metrics find it from now on.

        Raises:
            Stopping: the daemon is being stopped.
            Conflict: the version is registered, and has not failed.
        """
        self._check_going_on()
        model.replaces = self._registry.add(model)
        self._metrics.add(model.metrics)

    async def scale(self, model: Model, least: int, most: int, *, synchronous: bool, progress: Progress) -> None:
        """Scale to at least `least` and at most `most` workers; retired workers finish their batch.

        Raises:
            BadRequest: more than `MOST_WORKERS` are wanted, or the model's files are gone.
            BeingReplaced: a replacement is loading, and the change would be lost.
            Stopping: the version is being stopped.
            NotRemembered: the change is applied, but the snapshot could not be written.
            WorkersFailed: a worker could not load the model; the others go on serving.
        """
        check_workers(most)
        check_unclaimed(model)
        if model.stopping:
            raise Stopping(f'Model "{model.name}" version {model.version} is being stopped.')
        _check_files(model)
        model.scale(least, most)
        wanted = model.pool.wanted
        wishes = model.request.wishes.changed({"workers": least}, "scale").changed({"max_workers": most})
        model.request = replace(model.request, wishes=wishes)
        _log.info("scaled %s/%s to %d workers", model.name, model.version, model.pool.wanted)
        await self.remember(model)
        if synchronous:
            await all_ready(model, wanted, progress)

    async def retry(self, model: Model, *, synchronous: bool, progress: Progress) -> None:
        """Start the workers of a failed or crashing version again, with a clean record.

        Quarantined requests are accepted again, too.

        Raises:
            NotFailed: the version has not failed, is not crashing, and quarantines no request.
            BadRequest: the model's files are gone.
            BeingReplaced: a replacement is loading.
            WorkersFailed: a worker could not load the model again.
        """
        check_unclaimed(model)
        _check_files(model)
        pool = model.pool
        if not model.retryable:
            raise NotFailed(model.name, model.version, model.word, pool.given_up, pool.wanted)
        _log.info("trying %s/%s again with %d workers", model.name, model.version, pool.wanted)
        model.retry()
        if synchronous:
            await all_ready(model, pool.wanted, progress)

    async def set_default(self, name: str, version: str) -> None:
        """Choose the version that answers when a client names none.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            NotRemembered: the change is applied, but the snapshot could not be written.
        """
        self.choose_default(name, version)
        await self.remember(self._registry.find(name, version))

    def choose_default(self, name: str, version: str) -> None:
        """Choose the default version as `set_default`, without writing the snapshot: the next change does."""
        self._registry.set_default(name, version)
        self._chosen[name] = version

    async def unregister(self, name: str, version: str | None) -> Model:
        """Take a version out of service; running requests finish within the grace time.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            DefaultVersionKept: the version is the default, and other versions are registered.
            BeingReplaced: a replacement is loading.
            NotRemembered: the version is gone, but returns after a restart: the snapshot could not be written.
            CleaningTimedOut: the version is gone, but a worker process could not be ended.
        """
        check_unclaimed(self._registry.find(name, version))
        model = self._registry.remove(name, version)
        _log.info("unregistered %s/%s", model.name, model.version)
        try:
            await self.save()
        finally:
            await self.retire(model, self._config.grace)
        if not model.pool.empty:
            raise CleaningTimedOut(model.name)
        return model

    async def retire(self, model: Model, grace: float | None) -> None:
        """Retire a version, as `Retiring.retire`."""
        await self._retiring.retire(model, grace)

    def refuse(self) -> None:
        """Accept no registration and no request to any version from now on. `stop` does the rest."""
        self._stopping = True
        for model in self._everybody():
            model.stop()

    async def stop(self, grace: float) -> None:
        """Retire every version concurrently; no more are registered. The snapshot stays unchanged.

        Versions that are being retired already are included: that call may have been cancelled, or have more time.
        """
        self.refuse()
        await asyncio.gather(*(self.retire(model, grace) for model in self._everybody()))

    async def end(self) -> None:
        """Stop immediately: waiting and running requests are answered 503, and every worker is killed."""
        self._stopping = True
        await asyncio.gather(*(self._retiring.end(model) for model in self._everybody()))

    async def remember(self, model: Model) -> None:
        """Write the snapshot, including this version even if its registration is still in progress.

        A change of the version is about to be answered, and a restart must keep both the change and the version.
        If the registration fails after all, both are dropped.

        Raises:
            NotRemembered: the snapshot could not be written.
        """
        self._unsettled.discard(model)
        await self.save()

    async def save(self) -> None:
        """Write the snapshot, and remove directories that only the old one referred to.

        Raises:
            NotRemembered: the snapshot could not be written.
        """
        before = self.memory.kept or frozenset()
        await self.memory.save()
        for name in before - (self.memory.kept or frozenset()):
            self.directories.remove_unused(self.directories.named(name))

    def _present(self) -> list[Model]:
        return [*self._registry, *self._replacing.loading]

    def _everybody(self) -> list[Model]:
        return list(dict.fromkeys((*self._present(), *self._retiring.leaving)))

    def _entries(self) -> list[Entry]:
        """Return the entries of the snapshot."""
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

    async def _fetch(self, request: Request, progress: Progress, make: Callable[[Manifest, Contents], Model]) -> Model:
        """Find or download an archive, unpack it, and call `make`; remove the unpacked files if that fails."""

        async def opened(contents: Contents) -> Model:
            manifest = self.maker.manifest(request, contents.directory)
            await self.maker.install(manifest, contents.directory, progress)
            return make(manifest, contents)

        report = partial(progress, "downloading")
        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if path.is_dir():
                return await opened(Contents(model_root(path)))
            # Taken before the archive is read, so that a write meanwhile shows. A download is removed afterwards.
            mark = None if is_remote(request.url) else mark_of(path)
            unpacked = await self.directories.unpack(path, progress)
            try:
                return await opened(Contents(model_root(unpacked), unpacked, mark))
            except BaseException:
                self.directories.release(unpacked)
                raise

    def _make(self, request: Request, manifest: Manifest, contents: Contents, *, listed: bool = False) -> Model:
        return self.maker.make(
            request, manifest, contents.directory, contents.unpacked, contents.mark, listed=listed
        )  # fmt: skip

    async def _start(self, model: Model) -> None:
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retire(replaced, grace=0.0)
        _log.info("registered %s/%s from %s", model.name, model.version, model.source.url)
        model.start()

    def _replaceable(self, name: str, version: str) -> Model | None:
        """Return the version to replace, None if there is none.

        Raises:
            Conflict: the version is still being registered, or is being replaced.
            Stopping: the daemon is being stopped.
        """
        if not self._registry.holds(name, version):
            return None
        self._check_going_on()
        model = self._registry.find(name, version)
        if model in self._unsettled:
            sentence = f"Model version {version} of model {name} is still being registered."
            raise Conflict(name, version, f"{sentence} Try again when that is done.")
        check_unclaimed(model)
        return model

    def _check_going_on(self) -> None:
        if self._stopping:
            raise Stopping("The daemon is being stopped.")


def _check_files(model: Model) -> None:
    if model.lost:
        raise BadRequest(f"The files of {model.name}/{model.version} are gone; register it again.")
