"""Register, scale and unregister model versions: the steps that take time.

    locate or download ──▶ unpack ──▶ requirements ──▶ manifest, model-config ──▶ registry.add ──▶ workers

If a running version is replaced, the last two steps are those of replace.py.

A failure before `registry.add` leaves nothing behind. A synchronous registration whose workers
fail leaves nothing registered, and the error carries the handler's traceback; an asynchronous one
stays listed as failed, and registering the same version again replaces it.

Each change writes the snapshot (persistence/ledger.py) before the answer: every acknowledged change is on the
disk. persistence/restore.py serves the registrations of an earlier run again.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import CleaningTimedOut, Conflict, DaemonError, NotFailed, NotRemembered, Stopping
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.core.machine.processes import AvailableMemory
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.archives.download import PLACE
from tsctl.daemon.models.archives.manifest import check_own_file, check_version
from tsctl.daemon.models.archives.opening import Archives, Directories
from tsctl.daemon.models.archives.opening import Progress as Progress
from tsctl.daemon.models.archives.unpack import Limits
from tsctl.daemon.models.build import ArchiveTexts, ModelFactory
from tsctl.daemon.models.change import check_changeable, check_files
from tsctl.daemon.models.persistence.ledger import Gate, Ledger
from tsctl.daemon.models.persistence.snapshot_file import SnapshotFile
from tsctl.daemon.models.presence import all_ready, scaled_text
from tsctl.daemon.models.registering.ownership import OwnerWatch, check_name, check_owner
from tsctl.daemon.models.registry import LiveVersions, Registry
from tsctl.daemon.models.replace import Replacing, before_replacement, check_unclaimed, keep
from tsctl.daemon.models.request import Registration as Registration  # re-exported for callers
from tsctl.daemon.models.retirement import Retiring
from tsctl.daemon.models.routing.changes import RouteChanges
from tsctl.daemon.models.settings import check_room, check_workers
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import Engine, local_pid
from tsctl.daemon.workers.pool import Pool

_SAMPLED = 4  # ready workers, the newest, whose memory is measured before others are added
_UNMEASURED = 16  # workers, or two a core, that are started at once where none is ready to be measured


@dataclass(slots=True)
class _Attempt:
    """A registration in progress, as its failure is told; `beside`: the version that it replaces tells that."""

    model: str
    version: str = ""
    beside: bool = False


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress."""


class Registrar:
    """Changes the registry, one step after the other; the parts are shared with the start (persistence/restore.py).

    Args:
        live: by default a new one, of this registry and these metrics.
        recurring: receives the events; by default they are kept in memory.

    Attributes:
        registry: as given.
        gate: every change from outside passes the gate.
        live: the versions that are registered, loading or leaving.
        directories: the unpacked archives.
        archives: opens archives.
        factory: builds the models.
        ledger: the registrations that the snapshot keeps.
        retiring: ends versions.
        replacing: loads versions that take the place of others.
        events: the daemon's events.
        routes: changes the routes of models.
        owners: waits for the ends of the processes that own ephemeral versions.
        memory: as `room_for_more` (core/machine/processes.py); called in another thread. None not to ask.
    """

    def __init__(
        self,
        config: Config,
        registry: Registry,
        engine: Engine,
        clock: Clock,
        logs: ModelLogs,
        metrics: Metrics | None = None,
        live: LiveVersions | None = None,
        recurring: Recurring | None = None,
        gpus: Sequence[str] = (),
    ) -> None:
        recurring = recurring or Recurring(Events(), clock)
        self.events = recurring.events
        self._config = config
        self.registry = registry
        self.gate = Gate()
        self.live = live or LiveVersions(registry, metrics or Metrics())
        memory = SnapshotFile(paths.snapshot(config.state_dir), self.events.add)
        limits = Limits(config.archive_bytes, config.archive_files)
        self.directories = Directories(paths.models_dir(config.state_dir), limits, memory.keeps)
        self.archives = Archives(config, self.directories)
        self.factory = ModelFactory(config, engine, clock, logs, recurring, gpus)
        unused = partial(self.events.add, "part-unused")
        self.ledger = Ledger(registry, memory, self.directories, unused)
        self.retiring = Retiring(clock, logs, self.directories, self.live)
        self.routes = RouteChanges(registry, self.ledger, self.events)
        self.replacing = Replacing(registry, self.live, self.retiring, self.ledger, self.gate)
        self.owners = OwnerWatch(self.unregister_all)
        self.memory: Callable[[Sequence[int], Sequence[int]], tuple[int, AvailableMemory]] | None = None

    def clean(self) -> None:
        """Remove leftovers: unpacked archives that neither a model nor the snapshot refers to, and downloads."""
        for left in paths.downloads_dir(self._config.state_dir).glob(f"{PLACE}*"):
            shutil.rmtree(left, ignore_errors=True)
        self.directories.clean()

    async def register(
        self, request: Registration, progress: Progress = no_progress, *, replace: bool = False, reset: bool = False
    ) -> ModelVersion:
        """Register a version and start its workers.

        Args:
            replace: if the version is registered, the old one serves until the new one is ready.
            reset: a replacement keeps no setting of the old version.

        Raises:
            DaemonError: the model cannot be served; nothing is left behind.
            NotRemembered: the model is served, but the snapshot could not be written.
        """
        attempt = _Attempt(request.model_name or "")
        try:
            return await self._register(request, progress, attempt, replace=replace, reset=reset)
        except DaemonError as error:
            unwanted = isinstance(error, Stopping) and not self.live.stopping  # it was unregistered meanwhile
            if not attempt.beside and not unwanted:
                text = f"cannot register {request.url}: {error}"
                self.events.add("registration-failed", text, model=attempt.model, version=attempt.version)
            raise

    async def _register(
        self, request: Registration, progress: Progress, attempt: _Attempt, *, replace: bool, reset: bool
    ) -> ModelVersion:
        async with self.archives.open(request, progress) as contents:
            texts = await self.factory.read(request, contents.directory)
            manifest = texts.manifest
            attempt.model, attempt.version = manifest.model_name, manifest.model_version
            check_version(request, manifest)
            check_own_file(request, manifest, contents.directory, self.registry)
            await self.factory.install(manifest, contents.directory, progress)
            if request.ephemeral:
                self._check_name(request, manifest.model_name, replace=replace)
            old = self.replacing.replaceable(manifest.model_name, manifest.model_version) if replace else None
            wanted = request if old is None or reset else keep(request, old)
            model = self.factory.build(wanted, texts, *contents)
            if old is None:
                self.live.add(model)
                self.ledger.unsettled.add(model)
            else:
                model.before = before_replacement(request, old, reset=reset)
                self.replacing.load_beside(old, model)
                attempt.beside = True
            if request.owner_pid:
                self.owners.watch(request)
        if old is not None:
            at_once = not model.pool.wanted  # no worker to wait for; the answer says that the replacement is done
            await self.replacing.finish(model, progress, synchronous=request.synchronous or at_once)
            return model
        await self.start_workers(model)
        try:
            if request.synchronous and model.pool.wanted:
                await self._wait_or_discard(model, progress)
        finally:
            self.ledger.unsettled.discard(model)
        await self.ledger.save()
        return model

    async def start_workers(self, model: ModelVersion) -> None:
        """Start the workers of a version that was added, in place of a failed one if there was one."""
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retiring.retire(replaced, grace=0.0)
        model.reports.add("registered", f"registered from {model.source.url}")
        model.start()

    async def renew(
        self, old: ModelVersion, what: str, progress: Progress = no_progress, *, synchronous: bool = True
    ) -> ModelVersion:
        """Replace a version by itself, built anew, as services specify its workers now.

        Args:
            what: the new workers, for the events.
            synchronous: wait until the new version serves.

        Raises:
            Upgrading: the daemon is being upgraded.
            BeingReplaced: another archive is about to take the version's place.
            DaemonError: the version cannot be loaded so; the old one goes on serving.
        """
        with self.gate.change():
            if self.replacing.replaceable(old.name, old.version) is not old:
                raise Conflict(old.name, old.version)
            source, request = old.source, replace(old.request, synchronous=False)
            if old.presence.least and request.overrides.workers is None:  # scaled, or loaded on demand
                request = replace(
                    request, overrides=request.overrides.changed({"fallback_workers": old.presence.least})
                )
            new = self.factory.build(
                request, ArchiveTexts(source.manifest, source.document), source.directory, source.unpacked, source.mark,
                listed=source.listed, restored=old.at_startup, declared=old.declared, notes=old.notes,
            )  # fmt: skip
            if source.unpacked is not None:
                self.directories.use(source.unpacked)
            new.before = before_replacement(request, old, reset=False)
            self.replacing.load_beside(old, new, what)
            await self.replacing.finish(new, progress, synchronous=synchronous)
            return new

    async def scale(self, model: ModelVersion, least: int, most: int, *, synchronous: bool, progress: Progress) -> None:
        """Scale to at least `least` and at most `most` workers; retired workers finish their batch.

        Where none is ready, some are started and measured before all others, unless another command comes meanwhile.
        Where nobody waits, an event tells why the others are not started.

        Raises:
            BadRequest: more than `MOST_WORKERS` are wanted, or the model's files are gone.
            BeingReplaced: a replacement is loading, and the change would be lost.
            OutOfResources: memory has no room for so many workers like those that are ready.
            Stopping: the version is being stopped.
            NotRemembered: the change is applied, but the snapshot could not be written.
            WorkersFailed: a worker could not load the model; the others go on serving.
        """
        check_workers(most)
        first = await self._check_room(model.pool, least)
        check_changeable(model)
        if first < least:
            steps = partial(self._scale_in_steps, model, first, least, most, synchronous=synchronous, progress=progress)
            if synchronous:
                await steps()
            else:
                self.replacing.go_on(steps)
            return
        model.scale(least, most)
        wanted = model.pool.wanted
        overrides = model.request.overrides.changed({"workers": least}, "scale").changed({"max_workers": most})
        model.request = replace(model.request, overrides=overrides, held=False)
        model.reports.add("scaled", scaled_text(least, most))
        await self.ledger.remember(model)
        if synchronous:
            await all_ready(model, wanted, progress)

    async def _scale_in_steps(
        self, model: ModelVersion, first: int, least: int, most: int, *, synchronous: bool, progress: Progress
    ) -> None:
        try:
            await self.scale(model, first, most, synchronous=True, progress=progress)
            if model.presence.least == first:
                await self.scale(model, least, most, synchronous=synchronous, progress=progress)
        except DaemonError as error:
            if not synchronous:
                model.reports.add("scaling-failed", f"not {scaled_text(least, most)}: {error}")
            raise

    async def _check_room(self, pool: Pool, wanted: int) -> int:
        """Return how many of the wanted workers may be started now; fewer where none is ready to be measured."""
        further = wanted - len(pool.workers)
        if self.memory is None or further <= 0 or pool.spec.engine is not None:
            return wanted
        ready = [local_pid(worker) for worker in pool.workers if worker.report is not None]
        if not ready:
            return min(wanted, max(_UNMEASURED, 2 * pool.cores, len(pool.workers)))
        leaving = [local_pid(worker) for model in self.registry for worker in model.pool.leaving]
        each, least = await asyncio.to_thread(self.memory, ready[-_SAMPLED:], leaving)
        check_room(wanted, further, each, least)
        return wanted

    async def load(self, model: ModelVersion, *, synchronous: bool, progress: Progress) -> None:
        """Load a version with its workers, at least one; a loaded one stays as it is. Raises as `scale`."""
        check_changeable(model)
        model.request = replace(model.request, held=False)
        if not model.presence.most:
            workers = max(1, model.settings.workers)
            overrides = model.request.overrides.changed({"workers": workers, "max_workers": workers}, "scale")
            model.request = replace(model.request, overrides=overrides)
            model.scale(workers, max(workers, model.settings.max_workers))
        elif not model.pool.ready:
            model.presence.resume("loaded by an operator")
        model.reports.add("loading", "loaded by an operator")
        await self.ledger.remember(model)
        if synchronous:
            await all_ready(model, model.pool.wanted, progress)

    async def unload(self, model: ModelVersion) -> None:
        """Unload a version; it stays registered, keeps its number of workers, and no request loads it.

        Its running requests finish, and those that wait are refused. Raises as `scale`.
        """
        check_changeable(model)
        model.request = replace(model.request, held=True)
        if not model.presence.ended:
            model.presence.end("unloaded by an operator")
            model.reports.add("unloaded", "unloaded by an operator")
        await self.ledger.remember(model)

    async def retry(self, model: ModelVersion, *, synchronous: bool, progress: Progress) -> None:
        """Start the workers of a failed or crashing version again, with a clean record.

        Requests that the version refuses for a while are accepted again, too.

        Raises:
            NotFailed: the version has not failed, is not crashing, and refuses no request for a while.
            BadRequest: the model's files are gone.
            BeingReplaced: a replacement is loading.
            WorkersFailed: a worker could not load the model again.
        """
        check_unclaimed(model)
        check_files(model)
        pool = model.pool
        if not model.retryable:
            raise NotFailed(model.name, model.version, model.word, pool.given_up, pool.wanted)
        model.reports.add("retried", f"trying again with {pool.wanted} worker{'' if pool.wanted == 1 else 's'}")
        model.retry()
        if synchronous:
            await all_ready(model, pool.wanted, progress)

    async def set_default(self, name: str, version: str) -> None:
        """Choose the version that answers when a client names none; the model's route, if it has one, is removed.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            DaemonError: the model is reserved.
            NotRemembered: the change is applied, but the snapshot could not be written.
        """
        self.registry.check_unreserved(name)
        self.ledger.choose_default(name, version)
        self.registry.routes.put(name, None)
        self.events.add("default-changed", "the default version from now on", model=name, version=version)
        await self.ledger.remember(self.registry.find(name, version))

    async def unregister(self, name: str, version: str | None, owner: str = "") -> ModelVersion:
        """Take a version out of service; running requests finish within the grace time.

        Args:
            owner: the token of the program that asks, if it registered the version; empty for an operator.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            DefaultVersionKept: the version is the default, and other versions are registered.
            RoutedVersion: the model's route sends requests to the version.
            Conflict: the version that serves now has another owner.
            BeingReplaced: a replacement is loading.
            DaemonError: the version is reserved.
            NotRemembered: the version is gone, but returns after a restart: the snapshot could not be written.
            CleaningTimedOut: the version is gone, but a worker process could not be ended.
        """
        check_owner(self.registry.find(name, version), owner)
        check_unclaimed(self.registry.find(name, version))
        model = self.registry.remove(name, version)
        model.reports.add("unregistered", "unregistered")
        try:
            await self.ledger.save()
        finally:
            await self.retiring.retire(model, self._config.grace)
        if not model.pool.empty:
            raise CleaningTimedOut(model.name)
        return model

    async def unregister_all(self, owner: str) -> None:
        """Unregister the ephemeral versions of an owner whose process has ended.

        Raises:
            Upgrading: the daemon is being upgraded; the next one sees the end, too.
            BeingReplaced: a replacement is loading.
            DaemonError: as `unregister`.
        """
        with self.gate.change():
            for model in [model for model in self.registry if model.request.owner == owner]:
                if model.request.ephemeral:
                    model.reports.add("owner-gone", "the process that served it has ended")
                    await self._leave_route(model)
                    await self.unregister(model.name, model.version, owner)

    async def _leave_route(self, model: ModelVersion) -> None:
        """Take a version that must go out of its model's route, and out of what has reserved it."""
        reservation = self.registry.reservations.get(model.name)
        if reservation is not None and model.version in reservation.versions:
            await reservation.release(model, f"the process that served {model.version} has ended")
        self.registry.routes.drop(model.name, model.version)
        route = self.registry.routes.of(model.name)
        if route is not None:
            self.ledger.choose_default(model.name, route.main)

    def refuse(self) -> None:
        """Accept no registration and no request to any version from now on. `stop` does the rest."""
        self.live.stopping = True
        self.owners.close()
        for model in self.live:
            model.stop()

    async def stop(self, grace: float) -> None:
        """Retire every version concurrently; no more are registered. The snapshot stays unchanged.

        Versions that are being retired already are included: that call may have been cancelled, or have more time.
        """
        self.refuse()
        await asyncio.gather(*(self.retiring.retire(model, grace) for model in self.live))

    async def stop_now(self) -> None:
        """Stop immediately: waiting and running requests are answered 503, and every worker is killed."""
        self.live.stopping = True
        await asyncio.gather(*(self.retiring.retire_now(model) for model in self.live))

    def _check_name(self, request: Registration, name: str, *, replace: bool) -> None:
        registered = self.registry.versions(name) if name in self.registry else []
        check_name(request, name, registered, {entry.name for entry in self.ledger.pending}, replace=replace)

    async def _wait_or_discard(self, model: ModelVersion, progress: Progress) -> None:
        """Wait for the workers of a version; if one cannot load the model, the version is registered no more."""
        try:
            await all_ready(model, model.pool.wanted, progress)
        except DaemonError:
            self.registry.discard(model)
            self.ledger.memory.discard(model.name, model.version)
            if not model.stopping:  # else `stop` retires the model
                await self.retiring.retire(model, grace=0.0)
            with contextlib.suppress(NotRemembered):  # the model may have replaced a failed version
                await self.ledger.save()
            raise
