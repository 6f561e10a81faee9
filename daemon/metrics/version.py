"""The metrics of one version of a model, as reported by its model and its dispatcher."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import WHOSE, Batch, Ending, Fate, Job, Outcome, counts, ending_of_refusal, ending_of_status
from tsctl.daemon.core.quick_counter import QuickCounter
from tsctl.daemon.metrics.emitted import Emitted
from tsctl.daemon.metrics.histogram import BATCH_SIZES, FINE, SECONDS, Counts, Exemplars, Histogram, Recent, Window
from tsctl.handlers.wire import Isolation

OTHER, INVALID = "other", "invalid"
# By the error's name: some are defined in rooms above this one. Those of extensions say their label themselves.
REASONS: dict[str, str] = {
    "QueueFull": "queue_full",
    "NoReadyWorker": "no_worker",
    "Loading": "loading",
    "Stopping": "stopping",
    "BadRequest": INVALID,
    "TooManyRequests": "client_rate",
}


def reason_of(error: DaemonError) -> str:
    """Return the reason, one of `REASONS` or `OTHER`; that of a subclass is its nearest base's.

    Any other that is its client's doing, such as a key that does not allow the model, is `invalid`.
    """
    if error.refusal_label:
        return error.refusal_label
    for each in type(error).__mro__:
        if each.__name__ in REASONS:
            return REASONS[each.__name__]
    return INVALID if ending_of_refusal(error) is Ending.REJECTED else OTHER


class MetricsListener(Protocol):
    """Gets what is counted, when it is counted."""

    def sent(self, status: int) -> None:
        """Note an answer on any address."""

    def requested(self, model: str, version: str) -> None:
        """Note a request; `version` is `default` if the request named none."""

    def waited(self, model: str, version: str, seconds: float) -> None:
        """Note the time until a worker began a request."""

    def answered(self, model: str, version: str, seconds: float) -> None:
        """Note the time from a request to its answer."""

    def batch_returned(self, model: str, ids: str, inside: float, overhead: float, handler: float | None) -> None:
        """Note a batch: seconds in the worker, on the way, and in the handler if that is known."""


GOOD, BAD = "good", "bad"
# The attributes of a version's counters and histograms, by the names under which an upgrade hands them over.
_COUNTERS = ("batches", "expirations", "codes", "refusals", "exits", "given_up", "excused", "afterwards", "tally")
_HISTOGRAMS = {"given_up": "given_up_times", "unheard": "unheard_times"} | {
    name: name for name in ("ok", "failed", "late", "queue_time", "batch_size", "inference_time", "rejected", "held_up")
}


class Sums:
    """TorchServe's three counters: requests, and the seconds that they took and waited; and the bytes of bodies."""

    __slots__ = ("latency", "queue_time", "received", "requests", "sent")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0
        self.requests = 0
        self.latency = 0.0
        self.queue_time = 0.0

    def add(self, other: "Sums") -> None:
        self.requests += other.requests
        self.received += other.received
        self.sent += other.sent
        self.latency += other.latency
        self.queue_time += other.queue_time


class VersionMetrics:
    """The observer of one version. Durations are in seconds, times on the daemon's clock.

    Attributes:
        named, unnamed: requests that named the version, and those that took the default one.
        batches: sent batches by the collector's reason.
        expirations: expired requests, by where they were: "queue" or "worker".
        given_up: those of them whose client had chosen the deadline.
        codes: answers by status, also to requests that were refused or expired.
        excused: those of 500 and more that do not count against the version (core/job.py), by whose doing.
        afterwards: jobs that a worker has ended with after their clients had given up or left, by verdict.
        refusals: requests that were refused before they were run, by reason.
        tally: by name: `retried`, how often a request returned to the queue after its worker had begun and not answered
            it; `starts` of workers; `isolated`, batches whose jobs ran alone after the handler raised, and
            `failed_alone`, how many of those jobs failed.
        exits: workers that ended, by how: see `tsctl.daemon.workers.engine.Exit`.
        crashing: several workers in a row have ended while they ran a batch, without an answer between.
        ok, failed, late: the times of requests that a worker had, from complete receipt to the answer, in buckets of
            `FINE`: with a status below 400, with one from 500 on, and of those that expired by an operator's limit.
        rejected, given_up_times, held_up, unheard_times: the same of those that count neither way: with a status of
            4xx, expired by their clients' deadlines, and held up by slow readers; and of `afterwards`.
        window: remembers the counts, for `recent`.
        exemplars: recorded requests among those times; None while requests are not traced.
        log: gets the values as they are counted; None for nobody.
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
        self.batches: Counter[str] = QuickCounter()
        self.expirations: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.afterwards: Counter[str] = Counter()
        self.codes: Counter[int] = QuickCounter()
        self.refusals: Counter[str] = Counter()
        self.tally: Counter[str] = Counter()
        self.exits: Counter[str] = Counter()
        self.crashing = False
        self.ok, self.failed, self.late = Histogram(FINE), Histogram(FINE), Histogram(FINE)
        self.rejected, self.given_up_times = Histogram(FINE), Histogram(FINE)
        self.held_up, self.unheard_times = Histogram(FINE), Histogram(FINE)
        self.window = Window()
        self._counts: Counts | None = None  # the last ones
        self._counted = 0  # the requests that they count
        self.queue_time = Histogram(SECONDS)
        self.batch_size = Histogram(BATCH_SIZES)
        self.inference_time = Histogram(SECONDS)
        self.sent_at = self.last_queue_time = 0.0
        self.returned_at = self.last_inference_time = self.last_overhead = 0.0
        self.emitted = Emitted(name, version)
        self.exemplars: Exemplars | None = None
        self.log: MetricsListener | None = None

    def __repr__(self) -> str:
        return f"<VersionMetrics {self.name}/{self.version} {self.named.requests + self.unnamed.requests} requests>"

    @property
    def empty(self) -> bool:
        """Whether there are no counts to be kept."""
        return not (self.named.requests or self.unnamed.requests or self.codes or self.emitted.counters)

    @property
    def latency(self) -> Histogram:
        """The times of all requests that a worker had, in buckets of `SECONDS`."""
        return self.fine.folded(SECONDS)

    @property
    def latencies(self) -> dict[str, Histogram]:
        """The times of requests that a worker had, by outcome, in buckets of `SECONDS`; `client` only where known."""
        outcomes = {
            "ok": _sum_of(self.ok, self.rejected), "error": self.failed,
            "expired": _sum_of(self.late, self.given_up_times),
        }  # fmt: skip
        if any(self.held_up.counts):
            outcomes["client"] = self.held_up
        return {outcome: each.folded(SECONDS) for outcome, each in outcomes.items()}

    @property
    def fine(self) -> Histogram:
        """The times of all requests that a worker had, in buckets of `FINE`."""
        return _sum_of(self.ok, self.rejected, self.failed, self.late, self.given_up_times, self.held_up)

    @property
    def counts(self) -> Counts:
        """The counts for `recent`, as of now; the same object as long as no request ends."""
        requests, afterwards = self.codes.total(), self.afterwards.total()
        if self._counts is None or self._counted != requests + afterwards:
            self._counted = requests + afterwards
            excused = self.excused.total()
            errors = sum([count for code, count in self.codes.items() if code >= 500]) - excused
            aside = sum([count for code, count in self.codes.items() if 400 <= code < 500]) + excused
            latencies = _sum_of(self.ok, self.failed, self.late, self.unheard_times).counts
            self._counts = (
                Counts(requests, errors + self.afterwards[BAD], tuple(latencies), aside - afterwards)
                if self._counted
                else Counts()
            )
        return self._counts

    def recent(self, now: float) -> Recent:
        """Return what the last minute was like."""
        return self.window.recent(self.counts, now)

    def forget_recent(self) -> None:
        """Let the last minute begin now."""
        self.window = Window(self.counts)

    def refused(self, error: DaemonError) -> Ending:
        """Count a request that is answered with this error, and was not run; return the ending."""
        ending = ending_of_refusal(error)
        self.refusals[reason_of(error)] += 1
        self.codes[error.status] += 1
        self._excuse(ending, error.status)
        return ending

    def _excuse(self, ending: Ending, status: int) -> None:
        """Note that an answer of 500 or more, which was counted by its status, may not count against the version."""
        if status >= 500 and not counts(ending):
            self.excused[WHOSE[ending].name.lower()] += 1

    def returned_begun(self) -> None:
        """Count a request that returned to the queue after a worker had begun it."""
        self.tally["retried"] += 1

    def worker_started(self) -> None:
        self.tally["starts"] += 1

    def requested(self, job: Job) -> None:
        """Count a request, whether it will be accepted or not."""
        sums = self.unnamed if job.unnamed else self.named
        sums.requests += 1
        sums.received += job.size
        if self.log is not None:
            self.log.requested(self.name, self._label(job))

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
                if self.log is not None:
                    self.log.waited(self.name, self._label(job), waited)

    def _label(self, job: Job) -> str:
        return "default" if job.unnamed else self.version

    def returned(self, batch: Batch, seconds: float, now: float) -> None:
        """Count a batch that came back after `seconds` in the worker; not if it timed out, with 0.0."""
        if seconds:
            if batch.reason == "ahead":
                self._waited(batch, now - seconds)
            self.inference_time.observe(seconds)
            self.returned_at, self.last_inference_time = now, seconds
            if batch.reason != "ahead":  # which waited in the worker, too
                self.last_overhead = max(0.0, now - batch.sent - seconds)
            if self.log is not None:
                ids = ",".join([job.id for job in batch.jobs])
                self.log.batch_returned(self.name, ids, seconds, self.last_overhead, self.emitted.handler_time)

    def answered(self, job: Job, status: int, now: float, size: int = 0, ending: Ending | None = None) -> None:
        """Count the answer, of `size` bytes, to a job that a worker had.

        Args:
            ending: None for that of the status.
        """
        seconds = now - job.arrived
        self.codes[status] += 1
        if status >= 500:
            self.failed.observe(seconds)
            if ending is not None:
                self._excuse(ending, status)
        elif job.held_up:
            self.held_up.observe(seconds)
        else:
            (self.ok if status < 400 else self.rejected).observe(seconds)
        sums = self.unnamed if job.unnamed else self.named
        sums.latency += seconds
        sums.sent += size
        if self.log is not None:
            self.log.answered(self.name, self._label(job), seconds)

    def answered_here(self, job: Job, status: int, now: float, size: int) -> None:
        """Count the answer, of `size` bytes, to a job that no worker had: it says nothing of how fast they are."""
        self.codes[status] += 1
        sums = self.unnamed if job.unnamed else self.named
        sums.latency += now - job.arrived
        sums.sent += size

    def expired(self, job: Job, where: str, status: int, now: float, ending: Ending = Ending.OVERDUE) -> None:
        """Count a job that was answered, with this status, because it had expired."""
        self.expirations[where] += 1
        self.codes[status] += 1
        self._excuse(ending, status)
        if ending is Ending.GIVEN_UP:
            self.given_up[where] += 1
        if where == "worker":
            seconds = now - job.arrived
            (self.late if counts(ending) else self.given_up_times).observe(seconds)
            (self.unnamed if job.unnamed else self.named).latency += seconds

    def unheard(self, outcome: Outcome, now: float) -> None:
        """Count how a worker has ended with a job whose client had given up or left: as if it had waited.

        Not if nothing is known: the worker had not begun it, has dropped it, or was not needed any more.
        """
        job = outcome.job
        if job.ending is not Ending.GIVEN_UP and job.ending is not Ending.LEFT:
            return  # counted when it ended
        if outcome.fate in (Fate.UNSTARTED, Fate.CANCELLED, Fate.STOPPED):
            return
        ending = Ending.FAILED if outcome.reply is None else ending_of_status(outcome.reply.status)
        if counts(ending):
            self.afterwards[GOOD if ending is Ending.ANSWERED else BAD] += 1
            if not job.held_up:
                self.unheard_times.observe(now - job.arrived)

    def batch_isolated(self, isolation: Isolation) -> None:
        """Count a batch for which the handler raised, and whose jobs ran alone."""
        self.tally["isolated"] += 1
        self.tally["failed_alone"] += isolation.failed

    def continue_from(self, other: "VersionMetrics") -> None:
        """Continue the counters of the same version, registered earlier; both may still count, so they share them."""
        other.named.add(self.named)
        other.unnamed.add(self.unnamed)
        for name, theirs in other.counters.items():
            theirs.update(self.counters[name])
        self._share_counters(other)
        self.forget_recent()
        self.emitted.continue_from(other.emitted)

    def take_over(self, other: "VersionMetrics") -> None:
        """Share all counts with the same version, which this one replaces, and which may still answer requests."""
        other.exits.update(self.exits)  # this one's workers have started, and may have ended
        other.tally.update(self.tally)
        self._share_counters(other)
        self._share(other, ("window", *_HISTOGRAMS.values()))
        self.emitted.stages = other.emitted.stages
        self.emitted.continue_from(other.emitted)

    @property
    def counters(self) -> dict[str, Counter[Any]]:
        """All counters by their names, which an upgrade hands over (totals.py)."""
        return {name: getattr(self, name) for name in _COUNTERS}

    @property
    def histograms(self) -> dict[str, Histogram]:
        """All histograms by their names, which an upgrade hands over, too."""
        own = {name: getattr(self, attribute) for name, attribute in _HISTOGRAMS.items()}
        return own | {f"stage {name}": each for name, each in self.emitted.stages.items()}

    def _share_counters(self, other: "VersionMetrics") -> None:
        self._counts = None
        self._share(other, ("named", "unnamed", *_COUNTERS))

    def _share(self, other: "VersionMetrics", attributes: Iterable[str]) -> None:
        for name in attributes:
            setattr(self, name, getattr(other, name))


def _sum_of(*parts: Histogram) -> Histogram:
    made = Histogram(FINE)
    for each in parts:
        made.add(each.counts, each.sum)
    return made
