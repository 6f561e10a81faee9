"""The way of a version's requests: queue, collector, dispatcher and pool, wired, and set by the settings."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.batching.observer import BatchObserver
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.policies.table import make_collector
from tsctl.daemon.batching.queue import Queue, patience
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.registering.spec import first_batch_size, mode_of, worker_spec
from tsctl.daemon.models.request import Source
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import Engine, WorkerSpec
from tsctl.daemon.workers.gpus import Placement
from tsctl.daemon.workers.pool import Pool, PoolListener
from tsctl.daemon.workers.rows.pool import RowPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The parts of a daemon that a version runs with.

    Attributes:
        cores: that the version's workers share, unless `cpus` names fewer.
        chosen_threads, placement: as in `Pool`.
        log: takes the output of the workers.
        recurring: receives the version's events; by default nobody reads them.
        dispatcher: of the version.
        specify: returns the configuration of the version's workers: the given one, or another.
    """

    engine: Engine
    clock: Clock
    cores: int
    chosen_threads: int | None = None
    placement: Placement | None = None
    log: OutputLog = lambda text, pid, stream: None
    recurring: Recurring | None = None
    dispatcher: type[Dispatcher] = Dispatcher
    specify: Callable[[ModelSettings, WorkerSpec], WorkerSpec] = lambda settings, spec: spec

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
        self.too_large: list[Callable[[int], None]] = []
        self._settings = settings
        self._most: int | None = None
        spec = worker_spec(
            source.manifest, source.directory, settings,
            in_place=source.unpacked is None, python=source.python, log=resources.log,
            isolated=metrics.batch_isolated, too_large=self._tell_too_large, measured=metrics.emitted.take,
            share=resources.dispatcher.share,
        )  # fmt: skip
        spec = resources.specify(settings, spec)
        self.by_rows = spec.mode != "batch"
        self.queue = Queue(name, settings.queue_jobs, settings.queue_bytes)
        self.traffic = Traffic(settings.batch_size)
        cores = min(resources.cores, len(settings.cpus) or resources.cores)
        self.pool: Pool = (RowPool if self.by_rows else Pool)(
            resources.engine, spec, clock, listener, cores, resources.placement, resources.chosen_threads
        )
        self.dispatcher = resources.dispatcher(
            self.queue, self._collector(settings), self.pool, clock, self.traffic, metrics, listeners, observer
        )
        self._limit_waiting(settings)

    def __repr__(self) -> str:
        return f"<RequestPath {self.queue!r} {self.pool!r}>"

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
