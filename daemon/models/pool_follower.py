"""The follower of a version's pool: its metrics, its events, and the requests that wait."""

from collections.abc import Sequence
from typing import Protocol

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.admission import AskedVersion, no_worker_error, stopping_error
from tsctl.daemon.models.reporting.reports import VersionReports
from tsctl.daemon.models.request_path import RequestPath
from tsctl.daemon.models.settings import SettingsBefore
from tsctl.daemon.workers.engine import ENDS, LOAD_FAILED, STOPPED, BatchEvents, Exit, Worker
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers.wire import Declared


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
