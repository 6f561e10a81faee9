"""One version of a model: registered, with workers or without, stopped, gone.

                     ┌───────────── start, scale, retry ─────────────┐
                     │                                               │
    UNLOADED ──▶ LOADING ──a worker is ready──▶ READY ──none is──▶ LOADING ──every worker failed──▶ FAILED
        ▲                                         │
        └────────────── no worker is wanted ──────┴───────  any state ──stop──▶ STOPPING

The state is none of its own: it is read from the pool (reporting/model_state.py has the table).
"""

from collections.abc import Callable, Sequence
from math import inf

from tsctl.daemon.core.errors import DaemonError, Stopping
from tsctl.daemon.core.job import Job
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.admission import no_worker_error, refusal
from tsctl.daemon.models.archives.sample import Sample
from tsctl.daemon.models.presence import Presence
from tsctl.daemon.models.registering.batch_size import with_default_batch_size
from tsctl.daemon.models.registering.source import Source as Source
from tsctl.daemon.models.replacement import Replacement, ReplacementState
from tsctl.daemon.models.reporting.health import is_healthy
from tsctl.daemon.models.reporting.model_state import CRASHES, CRASHING, NOT_IN_MEMORY
from tsctl.daemon.models.reporting.model_state import ModelState as ModelState
from tsctl.daemon.models.reporting.reports import VersionReports
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.request_path import RequestPath, Resources
from tsctl.daemon.models.request_watcher import RequestWatcher
from tsctl.daemon.models.settings import ModelSettings, SettingsBefore
from tsctl.daemon.workers.engine import ENDS, LOAD_FAILED, STOPPED, BatchEvents, Exit, LoadFailure, Worker
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers.wire import Declared


class ModelVersion:
    """A registered version of a model.

    Attributes:
        request: the registration, with the changes that were requested since.
        at_startup: whether the version was restored, or loaded because a list names it.
        lost: whether the version was registered in an earlier run, and its files are gone.
        presence: whether the version has workers, and how many.
        was_ready: whether a worker has been ready since the registration.
        replaces: the version whose place this one took, until that one is retired.
        took_over: whether `replaces` was replaced while serving, and not registered anew after a failure.
        replacement: the latest attempt to replace this version, None if there was none.
        before: the settings of the version that this one replaces, None for a registration.
        declared: the inputs of a typed or built-in handler; None for any other, and until a worker has loaded it.
        notes: sentences of the first worker for the model's author.
        sample: the latest request that can be sent again, if somebody keeps it.
        by_rows: workers run requests on their own, not in batches.
        sequences: the open sequences; None if the version has none.
        traffic: the learned model of requests and batches.
        metrics: the version's metrics; shown from the registration on.
        reports: adds the version's events.
        listeners: called after each change of the pool, after each batch, and when jobs have expired.
        arrivals: called before each request.
        watchers: see each request before the version gets it.
        change_listeners: called after each change of the settings, and when an operator tries the version again.
    """

    def __init__(
        self,
        source: Source,
        settings: ModelSettings,
        resources: Resources,
        *,
        at_startup: bool = False,
        request: Registration | None = None,
        declared: Declared | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        settings = with_default_batch_size(settings, source.manifest.handler, declared)
        self.name = source.manifest.model_name
        self.version = source.manifest.model_version
        self.source = source
        self.settings = settings
        self.clock = resources.clock
        self.request = request or Registration(url=source.url)
        self.at_startup = at_startup
        self.lost = self.stopping = self.took_over = self.was_ready = self._coming_up = False
        self.replaces: ModelVersion | None = None
        self.replacement: Replacement | None = None
        self.before: SettingsBefore | None = None
        self.declared, self.notes = declared, notes
        self.sample: Sample | None = None
        self.listeners: dict[Callable[[], None], None] = {}  # in the order of their addition
        self.arrivals: dict[Callable[[], None], None] = {}
        self.watchers: tuple[RequestWatcher, ...] = ()
        self.change_listeners: list[Callable[[], None]] = []
        self.metrics = VersionMetrics(self.name, self.version)
        self.metrics.exits.update(dict.fromkeys(ENDS, 0))  # a rate sees the first one only after a zero
        self.reports = VersionReports(resources.events(), self.name, self.version)
        self._path = path = RequestPath(source, settings, resources, self, self.metrics, self.reports, self.listeners)
        self.queue, self.traffic, self.by_rows, self.sequences = path.queue, path.traffic, path.by_rows, path.sequences
        self.pool, self.dispatcher = path.pool, path.dispatcher
        self.presence = Presence(self.pool, self.resized)

    def __repr__(self) -> str:
        return f"<ModelVersion {self.name}/{self.version} {self.state.name} {self.queue!r} {self.pool!r}>"

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
    def min_workers(self) -> int:
        return self.presence.least

    @property
    def max_workers(self) -> int:
        return self.presence.most

    @property
    def crashing(self) -> bool:
        """Return whether the last workers ended by themselves, one after the other, while they ran requests."""
        return self.pool.crashes >= CRASHES

    @property
    def word(self) -> str:
        """Return the state in a word, for people: `crashing` for a served version whose workers keep ending."""
        state = self.state
        if self.crashing and state in (ModelState.READY, ModelState.LOADING):
            return CRASHING
        if state is ModelState.UNLOADED:
            return NOT_IN_MEMORY if self.request.held else self.presence.absence
        return str(state.value)

    @property
    def available(self) -> bool:
        """Return whether a prediction runs, or brings the workers that run it."""
        return self.state is ModelState.READY or (self.presence.comes and not self.stopping)

    @property
    def healthy(self) -> bool:
        """Return whether the version lets `/ping` be 200: see health.py."""
        pool = self.pool
        return is_healthy(
            ready=pool.ready, wanted=pool.wanted, recovering=pool.recovering, hopeless=pool.hopeless,
            coming_up=self._coming_up,
        )  # fmt: skip

    @property
    def being_replaced(self) -> bool:
        """Return whether another archive is loading to take this version's place."""
        return self.replacement is not None and self.replacement.state is ReplacementState.LOADING

    @property
    def idle(self) -> bool:
        """Return whether no job is waiting or running."""
        return not self.queue.waiting and not self.dispatcher.running

    @property
    def used_at(self) -> float:
        """Return when the last request came or was answered, on the daemon's clock; -inf before the first."""
        trace = self.traffic.trace
        return max(trace[-1] if trace else -inf, self.metrics.returned_at or -inf)

    @property
    def waiting(self) -> int:
        """Return the number of jobs that no worker has started: in the queue, or sent ahead to a busy worker."""
        return self.queue.waiting + self.pool.unstarted

    @property
    def running(self) -> int:
        """Return the number of jobs that workers have started."""
        return self.dispatcher.running - self.pool.unstarted

    def submit(self, job: Job) -> None:
        """Accept a job: every accepted job is answered.

        Raises:
            Stopping: the version is being stopped.
            Loading: no worker has been ready yet.
            NoReadyWorker: no worker is ready, and none is being replaced.
            QueueFull: a limit of the queue would be passed.
            DaemonError: the dispatcher refuses the job.
        """
        for call in tuple(self.arrivals) if self.arrivals else ():
            call()
        self.metrics.requested(job)
        try:
            if self.stopping:
                raise self._stopping_error()
            if not self.pool.serving:
                self._check_for_workers()
            self.dispatcher.submit(job)
        except DaemonError as error:
            if error.retry_after is not None and not self.pool.serving:
                self.presence.set_retry_after(error)
            job.ending = self.metrics.refused(error)
            self.reports.refused(job, error)
            for watcher in job.watchers:
                watcher.refused(job, error)
            raise

    def abandon(self, job: Job) -> None:
        self.dispatcher.abandon(job)
        self._changed()

    def start(self, *, load: bool = False) -> None:
        """Start the workers that the settings ask for, unless the version was stopped before (`Presence.start`)."""
        if not self.stopping:
            self.presence.start(self.settings.workers, self.settings.max_workers, held=self.request.held, load=load)

    def scale(self, least: int, most: int) -> None:
        """Scale to at least `least` and at most `most` workers; those of a version without any are started."""
        self.presence.scale(least, most)

    def resized(self) -> None:
        """Note that the range of workers, or their number, was set."""
        self._path.resize(self.settings, self.presence.most)
        self._coming_up = not self.pool.ready
        if self.pool.oversubscription is not None:
            self.reports.add("model-warning", self.pool.oversubscription)

    def change(self, settings: ModelSettings) -> None:
        """Apply new settings: waiting jobs are reconsidered, running batches finish."""
        self.settings = settings
        self._path.change(settings, self.max_workers)
        for listener in self.change_listeners:
            listener()
        self.dispatcher.wake()

    def learn(self, declared: Declared | None, notes: Sequence[str]) -> None:
        """Note what a worker tells of the handler, and choose the default batch size by that."""
        self.declared, self.notes = declared, notes
        settings = with_default_batch_size(self.settings, self.source.manifest.handler, declared)
        if settings is not self.settings:
            self.reports.add("settings-changed", f"batch size {settings.batch_size}, {settings.origins['batch_size']}")
            self.change(settings)

    @property
    def retryable(self) -> bool:
        """Return whether the version has failed, is crashing, or refuses requests for a while."""
        return self.state is ModelState.FAILED or self.crashing or self.dispatcher.withholds

    def retry(self) -> None:
        """Start missing workers with a clean record, and accept all requests again."""
        for listener in self.change_listeners:
            listener()
        self._coming_up = True
        self.presence.retried()
        self.pool.retry()

    def lose(self, reason: str) -> None:
        """Mark the version as failed because its files are gone, but keep it listed."""
        self.lost = True
        self.presence.lost(reason)
        self.pool.give_up(LoadFailure(reason))

    def stop(self) -> None:
        """Accept no more jobs; waiting jobs are dispatched without further delay."""
        self.stopping = self.dispatcher.stopping = True
        self.dispatcher.wake()

    def refuse_waiting(self) -> None:
        """Answer every job that still waits with 503: the version is going away."""
        self.dispatcher.refuse_all(self._stopping_error())

    def close(self) -> None:
        """Close the dispatcher, after the version is unregistered and all its workers have exited."""
        self.dispatcher.close()
        self.presence.left()
        self.reports.close()

    def _stopping_error(self) -> Stopping:
        return Stopping(f'Model "{self.name}" version {self.version} is being stopped.')

    def _check_for_workers(self) -> None:
        """Raise unless jobs wait (admission.py)."""
        error = refusal(
            self.name, self.state, self.pool.failure, comes=self.presence.comes, was_ready=self.was_ready,
            at_startup=self.at_startup, unloaded=self.request.held,
        )  # fmt: skip
        if error is not None:
            raise error
        self.presence.ask()

    def _changed(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    # PoolListener.

    @property
    def batches(self) -> BatchEvents:
        return self.dispatcher

    def worker_idle(self) -> None:
        self.dispatcher.wake()

    def pool_changed(self) -> None:
        self.metrics.crashing = self.crashing
        self.presence.pool_changed()
        beside = self.before is not None and not self.took_over
        self.reports.pool_changed(self.pool, crashing=self.crashing, beside=beside)
        if self.pool.ready:
            self._coming_up = False
            if not self.was_ready:
                self.was_ready = True
                first = next(worker for worker in self.pool.workers if worker.state is WorkerState.READY)
                self.learn(first.declared, first.notes)
        elif self.queue.waiting and self.pool.hopeless and not self.presence.comes:
            missing = no_worker_error(self.name, self.pool.failure, unloaded=self.request.held)
            self.dispatcher.refuse_all(self._stopping_error() if self.stopping else missing)
        self._changed()

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        kind = how.kind
        if expected and kind == "code":
            kind = STOPPED if worker.load_time else LOAD_FAILED
        self.metrics.exits[kind] += 1
        self.dispatcher.worker_gone(worker, how.reason)
        self.reports.worker_exited(worker, how, expected)

    def worker_started(self) -> None:
        self.metrics.worker_started()
