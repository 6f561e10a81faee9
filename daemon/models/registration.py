"""Registering, scaling and unregistering: the steps that take time.

    locate or download ──▶ unpack ──▶ manifest ──▶ model-config ──▶ requirements ──▶ registry.add ──▶ workers

A failure before `registry.add` leaves nothing behind. A synchronous registration whose workers
fail leaves nothing registered, and the error carries the handler's traceback; an asynchronous one
stays listed as failed, and registering the same version again replaces it.
"""

import asyncio
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from daemon import paths
from daemon.clock import Clock
from daemon.config import Config
from daemon.errors import DaemonError, OutOfResources, Stopping, WorkersFailed
from daemon.logs import ModelLogs
from daemon.marfile import Manifest
from daemon.metrics.metrics import Metrics
from daemon.models.archive import Limits, model_root, unpack
from daemon.models.download import archive_of
from daemon.models.manifest import read_manifest
from daemon.models.model import Model, Source
from daemon.models.modelconfig import Wishes, check_workers, merge, read_yaml, without_effect
from daemon.models.registry import Registry
from daemon.models.requirements import environment_python
from daemon.workers.devices import usable_cores
from daemon.workers.engine import Engine, LoadFailure
from daemon.workers.placement import Placement, count_gpus

# stage ("downloading", "unpacking", "installing", "loading"), done, total
Progress = Callable[[str, int, int], None]

_log = logging.getLogger("daemon.models")
_PROGRESS_EVERY = 0.05  # seconds
_LEAVE_TIME = 6.0  # seconds that a worker without work may take to leave before it is killed


def no_progress(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A registration.

    Attributes:
        url: a name in the model store, an absolute path, or a URL that the operator allows.
        local_paths: whether a path outside the store is allowed.
        synchronous: wait until every worker is ready.
    """

    url: str
    model_name: str | None = None
    handler: str | None = None
    runtime: str | None = None
    wishes: Wishes = field(default_factory=Wishes)
    synchronous: bool = True
    local_paths: bool = False


class Registration:
    """Changes the registry, one step after the other; `metrics` shows what is registered."""

    def __init__(
        self,
        config: Config,
        registry: Registry,
        engine: Engine,
        clock: Clock,
        logs: ModelLogs,
        metrics: Metrics | None = None,
    ) -> None:
        self._config = config
        self._registry = registry
        self._engine = engine
        self._clock = clock
        self._logs = logs
        self._metrics = metrics or Metrics()
        self._models_dir = paths.models_dir(config.state_dir)
        self._placement = Placement(count_gpus())
        self._installing = asyncio.Lock()
        self._stopping = False
        self._in_use: Counter[Path] = Counter()  # unpacked directories, by registrations and models

    def clean(self) -> None:
        """Remove unpacked archives that nothing refers to, and half downloads: what a crash left behind."""
        shutil.rmtree(paths.downloads_dir(self._config.state_dir), ignore_errors=True)
        self._models_dir.mkdir(mode=0o700, exist_ok=True)
        for entry in self._models_dir.iterdir():
            if not self._in_use[entry]:
                shutil.rmtree(entry, ignore_errors=True)

    async def register(self, request: Request, progress: Progress = no_progress) -> Model:
        """Register a version and start its workers.

        Raises:
            DaemonError: it cannot be served; nothing is left behind.
        """
        report = partial(progress, "downloading")
        async with archive_of(request.url, self._config, report, local_paths=request.local_paths) as path:
            if path.is_dir():
                model = await self._add(request, model_root(path), None, progress)
            else:
                unpacked = await self._unpack(path, progress)
                try:
                    model = await self._add(request, model_root(unpacked), unpacked, progress)
                except BaseException:
                    self._release(unpacked)
                    raise
        await self._retire_replaced(model)
        _log.info("registered %s/%s from %s", model.name, model.version, request.url)
        if model.settings.min_workers:
            model.scale(model.settings.min_workers, model.settings.max_workers)
            if request.synchronous:
                try:
                    await self._all_ready(model, progress)
                except DaemonError:
                    self._registry.discard(model)
                    if not model.stopping:  # else whoever stops it retires it
                        await self.retire(model, grace=0.0)
                    raise
        return model

    async def scale(self, model: Model, least: int, most: int, *, synchronous: bool, progress: Progress) -> None:
        """Have at least `least` and at most `most` workers; retired ones finish their batch.

        Raises:
            BadRequest: these are too many.
            WorkersFailed: a worker could not load the model; those that could go on serving.
        """
        check_workers(most)
        model.scale(least, most)
        _log.info("scaled %s/%s to %d workers", model.name, model.version, model.pool.wanted)
        if synchronous:
            await self._all_ready(model, progress)

    async def unregister(self, name: str, version: str | None) -> Model:
        """Take a version out of service; running requests finish within the grace time.

        Raises:
            ModelNotFound, VersionNotFound, DefaultVersionKept: it stays.
        """
        model = self._registry.remove(name, version)
        _log.info("unregistered %s/%s", model.name, model.version)
        await self.retire(model, self._config.grace)
        return model

    async def retire(self, model: Model, grace: float) -> None:
        """Let a version finish, then end its workers and remove what was unpacked for it.

        Args:
            grace: seconds for everything that waits and runs.
        """
        deadline = self._clock.now() + grace
        model.stop()
        await _until(model, lambda: model.idle or not model.pool.ready, grace)
        model.refuse_waiting()
        model.pool.drain(max(0.0, deadline - self._clock.now()))
        await _until(model, lambda: model.pool.empty, max(0.0, deadline - self._clock.now()) + _LEAVE_TIME)
        model.pool.kill()
        await _until(model, lambda: model.pool.empty, _LEAVE_TIME)
        self._logs.close(model.name, model.version)
        self._metrics.remove(model.metrics)
        if model.source.unpacked is not None:
            self._release(model.source.unpacked)

    async def stop(self, grace: float) -> None:
        """Retire every version, all at once; nothing more is registered."""
        self._stopping = True
        await asyncio.gather(*(self.retire(model, grace) for model in self._registry))

    async def _unpack(self, path: Path, progress: Progress) -> Path:
        loop = asyncio.get_running_loop()
        reported = 0.0

        def report(done: int, total: int) -> None:
            nonlocal reported
            now = time.monotonic()
            if now - reported >= _PROGRESS_EVERY:
                reported = now
                loop.call_soon_threadsafe(progress, "unpacking", done, total)

        limits = Limits(self._config.archive_bytes, self._config.archive_files)
        while True:
            unpacked = await asyncio.to_thread(unpack, path, self._models_dir, limits, report)
            if unpacked.is_dir():
                break  # else a registration of the same archive failed meanwhile, and removed it
        self._in_use[unpacked] += 1
        return unpacked

    def _release(self, unpacked: Path) -> None:
        self._in_use[unpacked] -= 1
        if self._in_use[unpacked] <= 0:
            del self._in_use[unpacked]
            shutil.rmtree(unpacked, ignore_errors=True)

    async def _add(self, request: Request, directory: Path, unpacked: Path | None, progress: Progress) -> Model:
        manifest = read_manifest(
            directory, model_name=request.model_name, handler=request.handler, runtime=request.runtime
        )
        document = read_yaml(directory, manifest.config_file)
        for key in without_effect(document):
            _log.warning("%s: `%s` in %s has no effect here", manifest.model_name, key, manifest.config_file)
        settings = merge(request.wishes, document, self._config, self._placement.gpus)
        python = await self._environment(manifest, directory, progress)
        if self._stopping:
            raise Stopping("The daemon is being stopped.")
        source = Source(request.url, directory, unpacked, manifest, document, python)
        log = self._logs.open(manifest.model_name, manifest.model_version)
        model = Model(
            source, settings, self._engine, self._clock, cores=usable_cores(), placement=self._placement, log=log
        )
        model.replaces = self._registry.add(model)
        self._metrics.add(model.metrics)
        return model

    async def _environment(self, manifest: Manifest, directory: Path, progress: Progress) -> Path | None:
        """Make the Python environment that the archive asks for, if the operator allows it."""
        if manifest.requirements_file is None:
            return None
        if not self._config.install_requirements:
            hint = "they are not installed (--install-requirements would)"
            _log.warning("%s names requirements in %s: %s", manifest.model_name, manifest.requirements_file, hint)
            return None
        progress("installing", 0, 0)
        requirements = directory / Path(manifest.requirements_file).name
        environments = paths.environments_dir(self._config.state_dir)
        async with self._installing:  # one pip at a time: two models may have the same requirements
            return await asyncio.to_thread(environment_python, requirements, environments, manifest.model_name)

    async def _retire_replaced(self, model: Model) -> None:
        if model.replaces is not None:
            replaced, model.replaces = model.replaces, None
            await self.retire(replaced, grace=0.0)

    async def _all_ready(self, model: Model, progress: Progress) -> None:
        failure: LoadFailure | None = None

        def settled() -> bool:
            nonlocal failure
            progress("loading", model.pool.ready, model.pool.wanted)
            failure = failure or model.pool.failure  # kept: the pool forgets it when another worker comes up
            return model.stopping or failure is not None or model.pool.ready >= model.pool.wanted

        await _until(model, settled, None)
        if model.stopping:
            raise Stopping(f'Model "{model.name}" version {model.version} was stopped while it was loading.')
        if failure is None:
            return
        sentence = f"Failed to start workers for model {model.name} version: {model.version}: {failure.error}"
        last = model.pool.last_exit
        details = failure.traceback or ("\n".join(last.output) if last is not None else "")
        kind = OutOfResources if failure.out_of_memory else WorkersFailed
        raise kind(f"{sentence}\n\n{details}" if details else sentence)


async def _until(model: Model, condition: Callable[[], bool], timeout: float | None) -> None:
    """Wait until a condition on a model holds, or the time is over; looks after each change."""
    done = asyncio.get_running_loop().create_future()

    def look() -> None:
        if not done.done() and condition():
            done.set_result(None)

    model.listeners.add(look)
    try:
        look()
        await asyncio.wait_for(done, timeout)
    except TimeoutError:
        pass
    finally:
        model.listeners.discard(look)
