"""The metrics of one version of a model, as reported by its model and its dispatcher."""

from collections import Counter

from daemon.core.job import Batch, Job
from daemon.metrics.emitted import Emitted
from daemon.metrics.histogram import BATCH_SIZES, SECONDS, Histogram
from handlers.wire import Isolation


class Sums:
    """TorchServe's three counters: requests, and the seconds that they took and waited."""

    __slots__ = ("latency", "queue_time", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.latency = 0.0
        self.queue_time = 0.0

    def add(self, other: "Sums") -> None:
        self.requests += other.requests
        self.latency += other.latency
        self.queue_time += other.queue_time


class VersionMetrics:
    """The observer of one version. Durations are in seconds, times on the daemon's clock.

    Attributes:
        named, unnamed: requests that named the version, and those that took the default one.
        batches: sent batches by the collector's reason.
        expirations: expired requests, by where they were: "queue" or "worker".
        quarantined: requests that were not run because the same request had ended workers.
        crashing: several workers in a row have ended while they ran a batch, without an answer between.
        isolated, failed_alone: batches whose jobs ran alone after the handler raised, and how many of those failed.
        latency: of requests that a worker had, from complete receipt to the answer.
        queue_time: of requests, from complete receipt until a worker first started them.
        batch_size: jobs in each batch that was sent.
        inference_time: of answered batches, as measured in the worker.
        sent_at, last_queue_time: when the last batch was sent, and how long its first job had waited.
        returned_at, last_inference_time, last_overhead: of the last answered batch: when, the time
            in the worker, and the time on the way there and back.
    """

    def __init__(self, name: str = "", version: str = "") -> None:
        self.name = name
        self.version = version
        self.named = Sums()
        self.unnamed = Sums()
        self.batches: Counter[str] = Counter()
        self.expirations: Counter[str] = Counter()
        self._isolations: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self.crashing = False
        self.latency = Histogram(SECONDS)
        self.queue_time = Histogram(SECONDS)
        self.batch_size = Histogram(BATCH_SIZES)
        self.inference_time = Histogram(SECONDS)
        self.sent_at = self.last_queue_time = 0.0
        self.returned_at = self.last_inference_time = self.last_overhead = 0.0
        self.emitted = Emitted(name, version)

    def __repr__(self) -> str:
        return f"<VersionMetrics {self.name}/{self.version} {self.named.requests + self.unnamed.requests} requests>"

    @property
    def empty(self) -> bool:
        """Whether there are no counts to be kept."""
        return not (self.named.requests or self.unnamed.requests or self.emitted.counters)

    @property
    def isolated(self) -> int:
        return self._isolations["batches"]

    @property
    def failed_alone(self) -> int:
        return self._isolations["failed"]

    @property
    def quarantined(self) -> int:
        return self._refusals["quarantined"]

    def request_quarantined(self) -> None:
        """Count a request rejected because the same request had ended workers."""
        self._refusals["quarantined"] += 1

    def requested(self, job: Job) -> None:
        """Count a request, whether it will be accepted or not."""
        (self.unnamed if job.unnamed else self.named).requests += 1

    def sent(self, batch: Batch) -> None:
        """Count a batch sent to a worker. A job that is sent again has waited once."""
        now = batch.sent
        if batch.reason != "ahead":  # these go on waiting: in the worker
            self._waited(batch, now)
        self.batches[batch.reason] += 1
        self.batch_size.observe(len(batch.jobs))
        self.sent_at, self.last_queue_time = now, now - batch.jobs[0].arrived

    def _waited(self, batch: Batch, until: float) -> None:
        for job in batch.jobs:
            if job.attempt == 1:
                waited = until - job.arrived
                self.queue_time.observe(waited)
                (self.unnamed if job.unnamed else self.named).queue_time += waited

    def returned(self, batch: Batch, seconds: float, now: float) -> None:
        """Count a batch that came back after `seconds` in the worker; not if it timed out, with 0.0."""
        if seconds:
            if batch.reason == "ahead":
                self._waited(batch, now - seconds)
            self.inference_time.observe(seconds)
            self.returned_at, self.last_inference_time = now, seconds
            if batch.reason != "ahead":  # which waited in the worker, too
                self.last_overhead = max(0.0, now - batch.sent - seconds)

    def answered(self, job: Job, now: float) -> None:
        """Count the answer to a job that a worker had."""
        seconds = now - job.arrived
        self.latency.observe(seconds)
        (self.unnamed if job.unnamed else self.named).latency += seconds

    def expired(self, job: Job, where: str, now: float) -> None:
        """Count a job that was answered because it had expired."""
        self.expirations[where] += 1
        if where == "worker":
            self.answered(job, now)

    def batch_isolated(self, isolation: Isolation) -> None:
        """Count a batch for which the handler raised, and whose jobs ran alone."""
        self._isolations["batches"] += 1
        self._isolations["failed"] += isolation.failed

    def continue_from(self, other: "VersionMetrics") -> None:
        """Continue the counters of the same version, registered earlier; both may still count, so they share them."""
        other.named.add(self.named)
        other.unnamed.add(self.unnamed)
        self.named, self.unnamed = other.named, other.unnamed
        other.batches.update(self.batches)
        other.expirations.update(self.expirations)
        other._isolations.update(self._isolations)
        other._refusals.update(self._refusals)
        self.batches, self.expirations, self._isolations = other.batches, other.expirations, other._isolations
        self._refusals = other._refusals
        self.emitted.continue_from(other.emitted)

    def take_over(self, other: "VersionMetrics") -> None:
        """Share all counts with the same version, which this one replaces, and which may still answer requests."""
        self.named, self.unnamed = other.named, other.unnamed
        self.batches, self.expirations = other.batches, other.expirations
        self.latency, self.queue_time = other.latency, other.queue_time
        self.batch_size, self.inference_time = other.batch_size, other.inference_time
        self._isolations, self._refusals = other._isolations, other._refusals
        self.emitted.continue_from(other.emitted)
