"""One version of a model: its queue, its collector, its dispatcher and its pool, wired together."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from daemon.batching.collector import Collector
from daemon.batching.dispatcher import Dispatcher
from daemon.batching.learned.traffic import Traffic
from daemon.batching.policies import make_collector
from daemon.batching.quarantine import Quarantine
from daemon.batching.queue import Queue, patience
from daemon.clock import Clock
from daemon.errors import DaemonError, Loading, NoReadyWorker, Stopping
from daemon.job import Batch, Job, Outcome, Reply
from daemon.marfile import Manifest
from daemon.metrics.version import VersionMetrics
from daemon.models.archive import ArchiveMark
from daemon.models.modelconfig import ModelSettings
from daemon.models.replacement import Replacement, ReplacementState
from daemon.models.request import Request
from daemon.models.sample import Sample
from daemon.workers.engine import Engine, LoadFailure, WorkerSpec
from daemon.workers.placement import Placement
from daemon.workers.pool import Pool

CRASHES = 3  # workers in a row, without an answer between
CRASHING = "crashing"  # the word for a version whose last workers ended so, while it is served

_log = logging.getLogger("daemon.models")


class ModelState(Enum):
    """What a version can do for a client now."""

    UNLOADED = "no workers"  # nobody asked for workers
    LOADING = "loading"  # workers are on their way, none is ready
    READY = "ready"  # at least one worker is ready
    FAILED = "failed"  # every worker failed, and none is tried again
    STOPPING = "stopping"  # it is being unregistered


@dataclass(frozen=True, slots=True)
class Source:
    """Where a version came from.

    Attributes:
        url: as the registration named it.
        directory: the model's files.
        unpacked: what was unpacked for it (`directory` or its parent), None if it is served in place.
        document: `model-config.yaml`, empty if there is none.
        mark: what the archive file was like, None if it is served in place.
        listed: it was loaded because `--models` or `load_models` named it.
        python: the interpreter of its own environment, None for the daemon's.
    """

    url: str
    directory: Path
    unpacked: Path | None
    manifest: Manifest
    document: Mapping[str, Any]
    mark: ArchiveMark | None = None
    listed: bool = False
    python: Path | None = None


class Model:
    """A registered version of a model.

    Attributes:
        request: what was asked for, with what was asked for since.
        at_startup: it was restored, or loaded because a list names it.
        lost: it was registered in an earlier run, and its files are gone.
        was_ready: a worker has been ready since it was registered.
        replaces: the version whose place it took, until that one is retired.
        took_over: that one was not registered anew, but replaced.
        replacement: the latest attempt to replace this one, None if there was none.
        recorded: the latest request that can be sent again, if it is to be kept.
        traffic: what is learned of its requests and batches.
        metrics: what is measured of it; shown once it is registered.
        listeners: called after each change of the pool, after each batch, and when jobs have expired.
    """

    def __init__(
        self,
        source: Source,
        settings: ModelSettings,
        engine: Engine,
        clock: Clock,
        *,
        cores: int,
        chosen_threads: int | None = None,
        placement: Placement | None = None,
        log: Callable[[str], None] = lambda line: None,
        at_startup: bool = False,
        request: Request | None = None,
    ) -> None:
        self.name = source.manifest.model_name
        self.version = source.manifest.model_version
        self.source = source
        self.settings = settings
        self.min_workers = self.max_workers = 0
        self.request = request or Request(url=source.url)
        self.at_startup = at_startup
        self.lost = False
        self.stopping = False
        self.was_ready = False
        self.replaces: Model | None = None
        self.took_over = False
        self.replacement: Replacement | None = None
        self.recorded: Sample | None = None
        self.clock = clock
        self.listeners: dict[Callable[[], None], None] = {}  # in the order they came
        self.metrics = VersionMetrics(self.name, self.version)
        spec = WorkerSpec(
            model_name=self.name,
            model_version=self.version,
            model_dir=source.directory,
            handler=source.manifest.handler,
            manifest=source.manifest.raw,
            batch_size=settings.batch_size,
            startup_timeout=settings.startup_timeout,
            response_timeout=settings.response_timeout,
            retry=settings.retry,
            isolate=settings.isolate,
            devices=settings.devices,
            python=source.python,
            optimize=settings.optimize,
            max_memory=settings.max_memory,
            cpus=settings.cpus,
            log=log,
            measured=self.metrics.emitted.take,
            isolated=self.metrics.batch_isolated,
        )
        self.queue = Queue(self.name, settings.queue_jobs, settings.queue_bytes)
        cores = min(cores, len(settings.cpus) or cores)
        self.pool = Pool(engine, spec, clock, self, cores, placement, chosen_threads)
        self.traffic = Traffic(settings.batch_size)
        self.dispatcher = Dispatcher(
            self.queue, self._make_collector(), self.pool, clock, self.traffic, self.metrics, self._changed,
            Quarantine(clock, f"{self.name}/{self.version}"),
        )  # fmt: skip
        self.dispatcher.quarantine.set(settings.quarantine)
        self._limit_waiting()

    def __repr__(self) -> str:
        return f"<Model {self.name}/{self.version} {self.state.name} {self.queue!r} {self.pool!r}>"

    @property
    def state(self) -> ModelState:
        if self.stopping:
            return ModelState.STOPPING
        if self.pool.ready:
            return ModelState.READY
        if not self.pool.wanted:
            return ModelState.UNLOADED
        return ModelState.FAILED if self.pool.hopeless else ModelState.LOADING

    @property
    def crashing(self) -> bool:
        """Return whether its last workers ended of themselves, one after the other, while they ran requests."""
        return self.pool.crashes >= CRASHES

    @property
    def word(self) -> str:
        """Return the state in a word, for people: `crashing` where it is served, but its workers do not live."""
        if self.crashing and self.state in (ModelState.READY, ModelState.LOADING):
            return CRASHING
        return self.state.value

    @property
    def healthy(self) -> bool:
        """It has the workers that were asked for, or has never had one and may still come up.

        A worker counts that ended while it ran a request, and is being replaced: one client's requests must not make
        a load balancer take the daemon from all others.
        """
        if self.state is ModelState.FAILED:
            return False
        return not self.was_ready or self.pool.ready + self.pool.recovering >= self.min_workers

    @property
    def being_replaced(self) -> bool:
        """Another archive is loading, to take its place."""
        return self.replacement is not None and self.replacement.state is ReplacementState.LOADING

    @property
    def idle(self) -> bool:
        """Nobody waits for an answer."""
        return not self.queue.waiting and not self.dispatcher.running

    @property
    def waiting(self) -> int:
        """Jobs that no worker has started: in the queue, or sent ahead to a busy worker."""
        return self.queue.waiting + self.pool.unstarted

    @property
    def running(self) -> int:
        """Jobs that workers have started."""
        return self.dispatcher.running - self.pool.unstarted

    def submit(self, job: Job) -> None:
        """Accept a job; from now on it is answered.

        Raises:
            NoReadyWorker, Stopping, QueueFull, Quarantined: it is not accepted.
        """
        self.metrics.requested(job)
        if self.stopping:
            raise self._stopping_error()
        if not self.pool.serving:
            self._check_for_workers()
        self.dispatcher.submit(job)

    def abandon(self, job: Job) -> None:
        self.dispatcher.abandon(job)
        self._changed()

    def record(self, sample: Sample) -> None:
        """Keep a request that was answered well, unless nobody wants that any more."""
        if self.settings.record_input:
            self.recorded = sample

    def start(self) -> None:
        """Have the workers that its settings ask for, unless it was stopped before they could be started."""
        if self.settings.workers and not self.stopping:
            self.scale(self.settings.workers, self.settings.max_workers)

    def scale(self, least: int, most: int) -> None:
        """Have at least `least` and at most `most` workers."""
        self.min_workers, self.max_workers = least, most
        self.pool.scale(min(max(self.pool.wanted, least), most))
        if self.pool.oversubscription is not None:
            _log.warning("%s/%s: %s", self.name, self.version, self.pool.oversubscription)

    def change(self, settings: ModelSettings) -> None:
        """Serve by other settings from now on: what waits is looked at anew, what runs is finished."""
        self.settings = settings
        if not settings.record_input:
            self.recorded = None
        self.queue.max_jobs, self.queue.max_bytes = settings.queue_jobs, settings.queue_bytes
        self.traffic.batch_size = settings.batch_size
        self.dispatcher.collector = self._make_collector()
        self._limit_waiting()
        self.dispatcher.quarantine.set(settings.quarantine)
        self.pool.set_limits(settings.batch_size, settings.response_timeout, settings.startup_timeout)
        self.dispatcher.wake()

    @property
    def retryable(self) -> bool:
        """Return whether it has failed, or is crashing, or refuses or isolates requests that end workers."""
        return self.state is ModelState.FAILED or self.crashing or self.dispatcher.quarantine.watching

    def retry(self) -> None:
        """Start anew where workers are missing, with a clean record; and run again the requests that were refused."""
        self.dispatcher.quarantine.set(self.settings.quarantine)
        self.pool.retry()

    def lose(self, reason: str) -> None:
        """Stay listed as failed: the files that it was served from are gone."""
        self.lost = True
        self.pool.give_up(LoadFailure(reason))

    def stop(self) -> None:
        """Accept nothing more; what waits goes out without further delay."""
        self.stopping = True
        self.dispatcher.stopping = True
        self.dispatcher.wake()

    def refuse_waiting(self) -> None:
        """Answer what still waits: the version is going away."""
        self.dispatcher.refuse_all(self._stopping_error())

    def close(self) -> None:
        """It is unregistered, and all its workers have gone."""
        self.dispatcher.close()

    def _make_collector(self) -> Collector:
        settings = self.settings
        return make_collector(settings.policy, settings.batch_size, settings.max_delay, self.traffic)

    def _limit_waiting(self) -> None:
        """Tell the queue and the dispatcher how long a job may wait, by the settings; those that wait already, too."""
        self.queue.patience = patience(self.settings.max_delay)
        self.dispatcher.expiry.queue_timeout = self.settings.queue_timeout or math.inf

    def _stopping_error(self) -> Stopping:
        return Stopping(f'Model "{self.name}" version {self.version} is being stopped.')

    def _check_for_workers(self) -> None:
        """Raise unless a worker that had been ready is being replaced: its requests are worth waiting."""
        state = self.state
        if state is ModelState.LOADING and not self.was_ready:
            raise Loading(f'Model "{self.name}" is still loading: no worker is ready yet. Try again later.')
        if state is not ModelState.LOADING:
            raise self._no_worker_error()

    def _no_worker_error(self) -> DaemonError:
        sentence = f'Model "{self.name}" has no worker to serve inference request.'
        failure = self.pool.failure
        if failure is not None:
            return NoReadyWorker(f"{sentence} Its workers failed: {failure.error}")
        return NoReadyWorker(f"{sentence} Please use scale workers API to add workers.")

    def _note_crashes(self) -> None:
        """Log when it begins to crash, and when that is over."""
        if self.crashing is self.metrics.crashing:
            return
        self.metrics.crashing = self.crashing
        if self.crashing:
            last = self.pool.last_exit.reason if self.pool.last_exit is not None else ""
            _log.warning(
                "%s/%s is crashing: %d workers ended one after the other while they ran requests, the last: %s",
                self.name, self.version, self.pool.crashes, last,
            )  # fmt: skip
        else:
            _log.info("%s/%s is not crashing any more", self.name, self.version)

    def _changed(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    # PoolListener.

    def worker_idle(self) -> None:
        self.dispatcher.wake()

    def batch_ended(self, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        self.dispatcher.ended(batch, outcomes, seconds)
        if self.metrics.crashing:
            self._note_crashes()
        if self.listeners:
            self._changed()

    def job_streamed(self, job: Job, piece: Reply) -> None:
        self.dispatcher.streamed(job, piece)

    def pool_changed(self) -> None:
        self._note_crashes()
        if self.pool.ready:
            self.was_ready = True
        elif self.queue.waiting and self.pool.hopeless:
            self.dispatcher.refuse_all(self._stopping_error() if self.stopping else self._no_worker_error())
        self._changed()
