"""The way of a version's requests: queue, collector, dispatcher and pool, wired, and set by the settings."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.batching.observer import BatchObserver
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.policies.grouping import LengthGrouping
from tsctl.daemon.batching.policies.table import make_collector
from tsctl.daemon.batching.queue import Queue, patience
from tsctl.daemon.batching.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.batching.sequences.table import Sequences
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.events.events import Events
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.models.registering.source import Source
from tsctl.daemon.models.registering.spec import limit, mode_of, worker_spec
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import Engine, Worker
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
        dispatcher: of a version without sequences.
    """

    engine: Engine
    clock: Clock
    cores: int
    chosen_threads: int | None = None
    placement: Placement | None = None
    log: OutputLog = lambda text, pid, stream: None
    recurring: Recurring | None = None
    dispatcher: type[Dispatcher] = Dispatcher

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
        sequences: the open sequences; None if the version has none.
        traffic: the learned model of requests and batches.
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
        spec = worker_spec(
            source.manifest, source.directory, settings,
            in_place=source.unpacked is None, python=source.python, log=resources.log,
            isolated=metrics.batch_isolated, measured=metrics.emitted.take,
        )  # fmt: skip
        self.by_rows = spec.mode != "batch"
        self.queue = Queue(name, settings.queue_jobs, settings.queue_bytes)
        self.traffic = Traffic(settings.batch_size)
        cores = min(resources.cores, len(settings.cpus) or resources.cores)
        self.pool: Pool = (RowPool if self.by_rows else Pool)(
            resources.engine, spec, clock, listener, cores, resources.placement, resources.chosen_threads
        )
        self.sequences: Sequences[Worker] | None = None
        self.dispatcher: Dispatcher = (SequenceDispatcher if settings.sequences else resources.dispatcher)(
            self.queue, self._collector(settings), self.pool, clock, self.traffic, metrics, listeners, observer
        )
        if isinstance(self.dispatcher, SequenceDispatcher):
            self.sequences = Sequences(name, settings.sequence_headers, overlapping=self.by_rows)
            self.dispatcher.keep(self.sequences, settings.sequence_headers, by_rows=self.by_rows)
        self._limit_waiting(settings, 0)

    def __repr__(self) -> str:
        return f"<RequestPath {self.queue!r} {self.pool!r}>"

    @property
    def used_at(self) -> float:
        """Return when the last request came or was answered, on the daemon's clock; -inf before the first."""
        trace = self.traffic.trace
        return max(trace[-1] if trace else -math.inf, self._metrics.returned_at or -math.inf)

    def change(self, settings: ModelSettings, most: int) -> None:
        """Apply new settings; `most` workers at most."""
        self.queue.max_jobs, self.queue.max_bytes = settings.queue_jobs, settings.queue_bytes
        self.traffic.batch_size = settings.batch_size
        self.dispatcher.collector = self._collector(settings)
        self._limit_waiting(settings, most)
        self.pool.set_limits(settings.batch_size, settings.response_timeout, settings.startup_timeout)

    def resize(self, settings: ModelSettings, most: int) -> None:
        """Note that there are `most` workers at most: each can keep sequences."""
        limit(self.sequences, settings, most)

    def _collector(self, settings: ModelSettings) -> Collector:
        rows = mode_of(settings) != "batch"
        return make_collector(settings.policy, settings.batch_size, settings.max_delay, self.traffic, rows=rows)

    def _limit_waiting(self, settings: ModelSettings, most: int) -> None:
        """Set how long a job may wait, also for jobs that wait already, and what may wait."""
        self.queue.patience = patience(settings.max_delay)
        self.dispatcher.expiry.queue_timeout = settings.queue_timeout or math.inf
        batches = not self.by_rows and self.sequences is None
        self.traffic.learn_lengths(batches and settings.group_by_length)
        padded = self.traffic.padded
        self.queue.grouping = None if padded is None else LengthGrouping(padded, self.dispatcher.expiry.queue_timeout)
        limit(self.sequences, settings, most)
