"""The way of a version's requests: queue, collector, dispatcher and pool, wired, and set by the settings.

What the pool reports of its workers is followed here, too: by metrics, events, and the requests that wait. So are the
jobs that a watcher of requests has taken: they wait here, and were accepted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.batching.observer import BatchObserver
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.policies.table import make_collector
from tsctl.daemon.batching.queue import Queue, patience
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job, JobPhase, Reply, error_reply
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.admission import AskedVersion, no_worker_error, stopping_error
from tsctl.daemon.models.registering.spec import first_batch_size, mode_of, places_of, worker_spec
from tsctl.daemon.models.reporting.reports import VersionReports
from tsctl.daemon.models.request import Source
from tsctl.daemon.models.settings import ModelSettings, SettingsBefore
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import ENDS, LOAD_FAILED, STOPPED, BatchEvents, Engine, Exit, Worker
from tsctl.daemon.workers.pool import Pool, PoolListener
from tsctl.daemon.workers.rows.pool import RowPool
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers.wire import Declared

D = TypeVar("D", bound=Dispatcher)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The parts of a daemon that a version runs with.

    Attributes:
        cores: that the version's workers share, unless `cpus` names fewer.
        chosen_threads, placement: as in `Pool`.
        log: takes the output of the workers.
        recurring: receives the version's events; by default nobody reads them.
    """

    engine: Engine
    clock: Clock
    cores: int
    chosen_threads: int | None = None
    placement: Placement | None = None
    log: OutputLog = lambda text, pid, stream: None
    recurring: Recurring | None = None

    def events(self) -> Recurring:
        """Return the receiver of the version's events."""
        return self.recurring or Recurring(Events(), self.clock)


class RequestPath:
    """The parts of one version through which its requests pass.

    Args:
        listener: of the pool.
        listeners: called after each batch, and when jobs have expired.

    Attributes:
        by_rows: workers run requests on their own, not in batches.
        traffic: the learned model of requests and batches.
        too_large: called with the number of rows for which a worker's memory did not suffice together.
    """

    def __init__(
        self,
        source: Source,
        settings: ModelSettings,
        resources: Resources,
        listener: PoolListener,
        metrics: VersionMetrics,
        observer: BatchObserver,
        listeners: dict[Callable[[], None], None],
    ) -> None:
        name, clock, self._metrics = source.manifest.model_name, resources.clock, metrics
        self._clock, self._listeners, self._observer = clock, listeners, observer
        self.too_large: list[Callable[[int], None]] = []
        self._settings = settings
        self._most: int | None = None
        spec = worker_spec(
            source.manifest, source.directory, settings,
            in_place=source.unpacked is None, python=source.python, log=resources.log,
            isolated=metrics.batch_isolated, too_large=self._tell_too_large, measured=metrics.emitted.add_measurements,
        )  # fmt: skip
        self.by_rows = spec.mode != "batch"
        self.queue = Queue(name, settings.queue_jobs, settings.queue_bytes)
        self.traffic = Traffic(settings.batch_size)
        cores = min(resources.cores, len(settings.cpus) or resources.cores)
        self.pool: Pool = (RowPool if self.by_rows else Pool)(
            resources.engine, spec, clock, listener, cores, resources.placement, resources.chosen_threads
        )
        self.dispatcher: Dispatcher = self.dispatch_by(Dispatcher)

    def __repr__(self) -> str:
        return f"<RequestPath {self.queue!r} {self.pool!r}>"

    def dispatch_by(self, kind: type[D]) -> D:
        """Send batches by a dispatcher of this kind, and return it; nothing was sent yet, and no worker started."""
        settings, pool = self._settings, self.pool
        dispatcher = kind(
            self.queue, self._collector(settings), pool, self._clock, self.traffic, self._metrics, self._listeners,
            self._observer,
        )  # fmt: skip
        self.dispatcher = dispatcher
        pool.spec = replace(pool.spec, rows=places_of(settings, kind.share))
        self._limit_waiting(settings)
        return dispatcher

    @property
    def used_at(self) -> float:
        """Return when the last request came or was answered, on the daemon's clock; -inf before the first."""
        trace = self.traffic.trace
        return max(trace[-1] if trace else -math.inf, self._metrics.returned_at or -math.inf)

    def change(self, settings: ModelSettings) -> None:
        """Apply new settings."""
        self._settings = settings
        size = self._batch_size()
        self.queue.max_jobs, self.queue.max_bytes = settings.queue_jobs, settings.queue_bytes
        self.traffic.batch_size = size
        self.dispatcher.collector = self._collector(settings)
        self._limit_waiting(settings)
        self.pool.choose_threads(settings.threads)
        self.pool.set_limits(size, settings.response_timeout, settings.startup_timeout)

    def _collector(self, settings: ModelSettings) -> Collector:
        return make_collector(
            settings.policy, self._batch_size(), settings.max_delay, self.traffic,
            first=first_batch_size(settings), rows=mode_of(settings) != "batch",
        )  # fmt: skip

    def limit_batches(self, most: int | None) -> None:
        """Send at most so many requests in a batch from now on, also where the settings allow more; None: as these."""
        self._most = most
        self.change(self._settings)

    def _batch_size(self) -> int:
        size: int = self._settings.batch_size
        return size if self._most is None else min(size, self._most)

    def _tell_too_large(self, rows: int) -> None:
        for call in self.too_large:
            call(rows)

    def _limit_waiting(self, settings: ModelSettings) -> None:
        """Set how long a job may wait, also for jobs that wait already."""
        self.queue.patience = patience(settings.max_delay)
        self.dispatcher.expiry.queue_timeout = settings.queue_timeout or math.inf


class FollowedVersion(AskedVersion, Protocol):
    """A version, as far as it follows its pool."""

    clock: Clock
    before: SettingsBefore | None
    took_over: bool
    stopping: bool
    metrics: VersionMetrics
    reports: VersionReports
    path: RequestPath

    @property
    def crashing(self) -> bool: ...

    def learn(self, declared: Declared | None, notes: Sequence[str], most_rows: int) -> None: ...

    def changed(self) -> None: ...


class PoolFollower:
    """The listener of one version's pool (`PoolListener`).

    Attributes:
        coming_up: no worker has been ready since the last command that changed their number, or tried again.
    """

    def __init__(self, model: FollowedVersion) -> None:
        self.coming_up = False
        self._model = model
        model.metrics.exits.update(dict.fromkeys(ENDS, 0))  # a rate sees the first one only after a zero

    def __repr__(self) -> str:
        return f"<PoolFollower of {self._model.name}/{self._model.version}>"

    def resized(self) -> None:
        """Note that the range of workers, or their number, was set."""
        model = self._model
        model.path.dispatcher.resized()
        self.coming_up = not model.pool.ready
        if model.pool.oversubscription is not None:
            model.reports.add("model-warning", model.pool.oversubscription)

    @property
    def batches(self) -> BatchEvents:
        return self._model.path.dispatcher

    def worker_idle(self) -> None:
        self._model.path.dispatcher.wake()

    def pool_changed(self) -> None:
        model, pool = self._model, self._model.pool
        crashing = model.metrics.crashing = model.crashing
        model.presence.pool_changed()
        beside = model.before is not None and not model.took_over
        model.reports.pool_changed(pool, crashing=crashing, beside=beside)
        if pool.ready:
            self.coming_up = False
            if not model.was_ready:
                model.was_ready = True
                first = next(worker for worker in pool.workers if worker.state is WorkerState.READY)
                model.learn(first.declared, first.notes, 0 if first.report is None else first.report.most_rows)
        elif model.path.queue.waiting and pool.hopeless and not model.presence.comes:
            model.path.dispatcher.refuse_all(stopping_error(model) if model.stopping else no_worker_error(model))
        model.changed()

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        kind, model = how.kind, self._model
        if expected and kind == "code":
            kind = STOPPED if worker.load_time else LOAD_FAILED
        model.metrics.exits[kind] += 1
        model.path.dispatcher.worker_gone(worker, how.reason)
        model.reports.worker_exited(worker, how, expected, model.clock.now())

    def worker_started(self) -> None:
        self._model.metrics.worker_started()


class TakingVersion(Protocol):
    """A version, as far as these jobs depend on it."""

    clock: Clock
    metrics: VersionMetrics

    def accept(self, job: Job, *, refused: bool = False) -> None: ...
    def changed(self) -> None: ...


class TakenJobs:
    """The jobs; as long as there are some, the version is not idle."""

    def __init__(self, model: TakingVersion) -> None:
        self._model = model
        self._jobs: dict[Job, None] = {}
        self._refusing = False

    def __repr__(self) -> str:
        return f"<TakenJobs {len(self._jobs)}>"

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def add_job(self, job: Job) -> None:
        """Note that a watcher has taken a job, unless it has answered it already."""
        if job.phase is JobPhase.QUEUED:
            self._jobs[job] = None

    def abandon(self, job: Job) -> None:
        """End a job whose client has left."""
        self._model.metrics.requested(job)
        job.abandon()
        self._release(job)

    def answer(self, job: Job, reply: Reply) -> None:
        """Answer a job that a watcher has taken, or takes now: no worker has run it."""
        metrics = self._model.metrics
        metrics.requested(job)
        metrics.answered_here(job, reply.status, self._model.clock.now(), len(reply.body))
        job.answer(reply)
        self._release(job)

    def give_back(self, job: Job) -> None:
        """Run a job, as one that was accepted, though the version may be stopping; a refusal is its answer."""
        job.queued = self._model.clock.now()
        try:
            self._model.accept(job, refused=self._refusing)
        except DaemonError as error:
            job.watchers = ()  # they have seen the refusal
            job.answer(error_reply(error), job.ending)
        self._release(job)

    def refuse_all(self) -> None:
        """Refuse these jobs, and those that are given back from now on: the version is going away."""
        self._refusing = True
        for job in tuple(self._jobs):
            if job in self._jobs:  # else its client has left, as others were answered
                self.give_back(job)

    def _release(self, job: Job) -> None:
        if job in self._jobs:
            del self._jobs[job]
            if not self._jobs:
                self._model.changed()
