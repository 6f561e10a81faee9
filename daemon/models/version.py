"""One version of a model: registered, with workers or without, stopped, gone.

    UNLOADED ──workers are wanted──▶ LOADING ──one is ready──▶ READY ──none is ready──▶ LOADING
    LOADING ──all have failed──▶ FAILED ──tried again──▶ LOADING
    any state ──no worker is wanted──▶ UNLOADED         any state ──stop──▶ STOPPING

The state is read from the pool, and kept nowhere else: reporting/model_state.py has the table.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.admission import check_for_workers, stopping_error
from tsctl.daemon.models.archives.sample import Sample
from tsctl.daemon.models.presence import Presence
from tsctl.daemon.models.registering.spec import batch_size_text, sized
from tsctl.daemon.models.replacement import Replacement
from tsctl.daemon.models.reporting.model_state import CRASHES, NOT_IN_MEMORY, ModelState, is_healthy, word_of
from tsctl.daemon.models.reporting.reports import VersionReports
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.models.request_path import PoolFollower, RequestPath, Resources, TakenJobs
from tsctl.daemon.models.request_watcher import ParameterHeader, RequestWatcher
from tsctl.daemon.models.settings import ModelSettings, SettingsBefore
from tsctl.daemon.workers.engine import LoadFailure
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
        most_rows: that the model's file takes at a time; 0 for any number, and until a worker has loaded it.
        sample: the latest request that can be sent again, if somebody keeps it.
        path: the parts that requests pass; `queue` to `dispatcher` are its attributes. Services may replace the latter.
        metrics: the version's metrics; shown from the registration on.
        reports: adds the version's events.
        listeners: called after changes of the pool, batches, and expiries, for those who wait for one of these.
        watchers: see each request before the version gets it; `taken` are the jobs that one has taken.
        parameter_headers: the parameters of requests in tensors that stand for headers.
        tell_services: lets services follow what has changed (`Service.follow`).
        parts: what services keep of the version, by the names of their extensions.
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
        settings = sized(settings, source.manifest.handler, declared)
        self.name, self.version = source.manifest.model_name, source.manifest.model_version
        self.source, self.settings = source, settings
        self.clock = resources.clock
        self.request = request or Registration(url=source.url)
        self.at_startup = at_startup
        self.lost = self.stopping = self.took_over = self.was_ready = False
        self.replaces: ModelVersion | None = None
        self.replacement: Replacement | None = None
        self.before: SettingsBefore | None = None
        self.declared, self.notes, self.most_rows = declared, notes, 0
        self.sample: Sample | None = None
        self.listeners: dict[Callable[[], None], None] = {}  # in the order of their addition
        self.watchers: tuple[RequestWatcher, ...] = ()
        self.taken = TakenJobs(self)
        self.parameter_headers: Mapping[str, ParameterHeader] = {}
        self.tell_services: Callable[[], None] = lambda: None
        self.parts: dict[str, Any] = {}
        self.metrics = VersionMetrics(self.name, self.version)
        self.reports = VersionReports(resources.events(), self.name, self.version)
        self._follower = PoolFollower(self)
        path = RequestPath(source, settings, resources, self._follower, self.metrics, self.reports, self.listeners)
        self.path, self.queue, self.traffic, self.by_rows = path, path.queue, path.traffic, path.by_rows
        self.pool, self.dispatcher = path.pool, path.dispatcher
        self.presence = Presence(self.pool, self._follower.resized)

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
    def crashing(self) -> bool:
        """Return whether the last workers ended by themselves, one after the other, while they ran requests."""
        return self.pool.crashes >= CRASHES

    @property
    def word(self) -> str:
        """Return the state in a word, for people: `crashing` for a served version whose workers keep ending."""
        return word_of(self.state, self.crashing, NOT_IN_MEMORY if self.request.held else self.presence.absence)

    @property
    def available(self) -> bool:
        """Return whether a prediction runs, or brings the workers that run it."""
        return self.state is ModelState.READY or (self.presence.comes and not self.stopping)

    @property
    def healthy(self) -> bool:
        """Return whether the version lets `/ping` be 200: see model_state.py."""
        return is_healthy(self.pool, coming_up=self._follower.coming_up)

    @property
    def being_replaced(self) -> bool:
        """Return whether another archive is loading to take this version's place."""
        return self.replacement is not None and self.replacement.pool is not None

    @property
    def idle(self) -> bool:
        """Return whether no job is waiting or running."""
        return not self.queue.waiting and not self.dispatcher.running and not self.taken

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
        self.accept(job, refused=self.stopping)

    def accept(self, job: Job, *, refused: bool = False) -> None:
        """Accept a job, as `submit`; also while the version is being stopped, unless it is to be `refused`."""
        self.metrics.requested(job)
        try:
            if refused:
                raise stopping_error(self)
            if not self.pool.serving:
                check_for_workers(self)
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
        if job in self.taken:
            self.taken.abandon(job)
            return
        self.dispatcher.abandon(job)
        self.changed()

    def start(self, *, load: bool = False) -> None:
        """Start the workers that the settings ask for, unless the version was stopped before (`Presence.start`)."""
        if not self.stopping:
            self.presence.start(self.settings.workers, self.settings.max_workers, held=self.request.held, load=load)

    def scale(self, least: int, most: int) -> None:
        """Scale to at least `least` and at most `most` workers; those of a version without any are started."""
        self.presence.scale(least, most)

    def change(self, settings: ModelSettings, *, known: ModelSettings | None = None) -> None:
        """Apply new settings, to waiting jobs too; running batches finish. A batch size that is `known` is not told."""
        self.settings = self._sized(settings)
        if self.settings is not settings and (text := batch_size_text(self.settings)) != batch_size_text(known):
            self.reports.add("settings-changed", text)
        self.path.change(self.settings)
        self.tell_services()
        self.dispatcher.wake()

    def learn(self, declared: Declared | None, notes: Sequence[str], most_rows: int = 0) -> None:
        """Note what a worker tells of the handler and of the model, and choose the batch size by that."""
        self.declared, self.notes, self.most_rows = declared, notes, most_rows
        if self._sized(self.settings) is not self.settings:
            self.change(self.settings, known=None if self.before is None else self.before.settings)

    def _sized(self, settings: ModelSettings) -> ModelSettings:
        return sized(settings, self.source.manifest.handler, self.declared, self.most_rows)

    @property
    def retryable(self) -> bool:
        """Return whether the version has failed, is crashing, or refuses requests for a while."""
        return self.state is ModelState.FAILED or self.crashing or self.dispatcher.withholds

    def retry(self) -> None:
        """Start missing workers with a clean record, and accept all requests again."""
        self.tell_services()
        self._follower.coming_up = True
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
        self.taken.refuse_all()
        self.dispatcher.refuse_all(stopping_error(self))

    def close(self) -> None:
        """Close the dispatcher, after the version is unregistered and all its workers have exited."""
        self.dispatcher.close()
        self.presence.left()
        self.reports.close()

    def changed(self) -> None:
        """Call the listeners."""
        for listener in tuple(self.listeners):
            listener()
