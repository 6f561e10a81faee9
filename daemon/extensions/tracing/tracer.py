"""Which requests are recorded, and the spans that their times become.

    predict MODEL                     from the complete headers to the answer; the client's span is its parent
    ├── queued                        until a worker begins the batch: one for each time the job waits
    └── worker                        the batch that the job runs in, from the daemon's view; its handler's parent
        ├── preprocess                the stages, where the handler reports them
        ├── inference
        └── postprocess

    batch MODEL                       one for each batch with a recorded request: a trace of its own, as it belongs to
                                      several; it links to the `worker` span of each, and each of them to it

A job that is run again has further spans `queued` and `worker`, and its handler is told of the new one. All times are
those that the daemon keeps anyway. A worker tells how long the stages took and not when: they are placed one behind the
other, in the middle of the time that the batch took.
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError, RequestExpired
from tsctl.daemon.core.job import WHOSE, Batch, Ending, Fate, Job, JobPhase, Outcome, Reply, Whose
from tsctl.daemon.extensions.tracing.context import (
    RANDOM,
    SAMPLED,
    TraceContext,
    caller_of,
    names_caller,
    with_context,
)
from tsctl.daemon.metrics.emitted import Emitted
from tsctl.daemon.metrics.histogram import Exemplars, LatencyExample
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import STAGE_TIME, STAGES, Measurement

SERVER, INTERNAL = "server", "internal"


class Span(msgspec.Struct, frozen=True, gc=False):
    """One span; thousands may wait, so the garbage collector does not look at them.

    Attributes:
        context: its own place in a trace.
        parent: the id of the span that it is a part of; empty for none.
        kind: `SERVER` for the daemon's answer to a client, `INTERNAL` for its parts.
        began, ended: seconds since the epoch.
        error: why it failed; None if it did not.
        links: other spans that it belongs to.
        events: names and times of what happened meanwhile, seconds since the epoch.
        foreign: the parent is another process's.
    """

    name: str
    context: TraceContext
    parent: str
    kind: str
    began: float
    ended: float
    attributes: Mapping[str, str | int | float | bool]
    error: str | None = None
    links: Sequence[TraceContext] = ()
    events: Sequence[tuple[str, float]] = ()
    foreign: bool = False


Attributes = dict[str, str | int | float | bool]

MOST_PATH = 1024  # characters of a path in a span: thousands of spans may wait
LEFT = "the client left before the answer was complete"


def new_trace() -> TraceContext:
    """Return the place of the first span of a new trace, which is recorded."""
    return TraceContext(_digits(16), new_span_id(), SAMPLED | RANDOM)


def new_span_id() -> str:
    return _digits(8)


def _digits(count: int) -> str:
    """Return random hexadecimal digits of so many bytes, not all of them 0."""
    found = random.randbytes(count).hex()
    return found if found.strip("0") else _digits(count)


class Traces:
    """Records the requests of all versions.

    Args:
        ratio: how many of the requests without a caller's trace are recorded, 0.0 to 1.0.
        offer: takes the finished spans.
    """

    def __init__(self, clock: Clock, ratio: float, offer: Callable[[Span], None]) -> None:
        self.clock = clock
        self.ratio = ratio
        self.offer = offer

    def follow(self, model: ModelVersion) -> None:
        """Record requests of a version, some of which its metrics show as examples."""
        if any(isinstance(each, ModelTracer) for each in model.watchers):
            return
        model.metrics.exemplars = exemplars = Exemplars()
        tracer = ModelTracer(self, model.name, model.version, exemplars, model.metrics.emitted)
        model.watchers += (tracer,)
        model.dispatcher.watchers += (tracer,)

    def wall(self) -> float:
        """Return what the clock's time has to be increased by, to be seconds since the epoch."""
        return time.time() - self.clock.now()


class RequestTrace:
    """The recorded trace of one job.

    Attributes:
        context: of the span `predict MODEL`.
        worker: of the next span `worker`, which the handler is told of.
        queued: since when the job waits, on the daemon's clock.
        wall: as `Traces.wall`, when the request came: so that a trace is consistent when the time is set.
    """

    def __init__(
        self, tracer: "ModelTracer", job: Job, caller: TraceContext | None, method: str, path: str, began: float
    ) -> None:
        own = new_trace()
        if caller is not None:
            own = caller.beside(own.span_id)
        self.context = own
        self.trace_id = own.trace_id
        self.worker = own.beside(new_span_id())
        self.queued = job.arrived
        self.wall = tracer.traces.wall()
        self._tracer = tracer
        self._caller = "" if caller is None else caller.span_id
        self._method, self._path = method, path[:MOST_PATH]
        self._began = began or job.arrived
        self._first_piece: float | None = None

    def __repr__(self) -> str:
        return f"<RequestTrace {self.context.header}>"

    def piece(self, piece: Reply) -> None:  # noqa: ARG002
        if self._first_piece is None:
            self._first_piece = self._tracer.traces.clock.now()

    def ended(self, job: Job, reply: Reply | None) -> None:
        if reply is None:
            self._end(job, 0, "cancelled", LEFT)
        else:
            text = bytes(reply.body[:1000]).decode("utf-8", "replace") if reply.error else f"status {reply.status}"
            self._end(job, reply.status, reply.error, text)

    def refused(self, job: Job, error: DaemonError) -> None:
        self.queued = math.inf  # it never waited
        self._end(job, error.status, error.kind, str(error))

    def _end(self, job: Job, status: int, kind: str, text: str) -> None:
        now = self._tracer.traces.clock.now()
        if job.sent < self.queued:  # the job has waited in vain, or was not accepted
            if self.queued < now:
                self._tracer.offer_queued(self, now)
        elif status:
            outcome = "expired" if kind == RequestExpired.kind else "error"
            if status < 500:
                outcome = "client" if job.held_up else "ok"
            example = LatencyExample(self.trace_id, now - job.arrived, now + self.wall)
            self._tracer.exemplars.note(outcome, example)
        attributes: Attributes = {
            "http.request.method": self._method, "url.path": self._path, "tsctl.request.id": job.id,
            "tsctl.model.name": self._tracer.name, "tsctl.model.version": self._tracer.version,
            "tsctl.attempts": job.attempt,
        }  # fmt: skip
        if status:
            attributes["http.response.status_code"] = status
        if kind or status >= 500:
            attributes["error.type"] = kind or str(status)
        events = [("received", job.arrived + self.wall)]
        if self._first_piece is not None:
            events.append(("first piece of the answer", self._first_piece + self.wall))
        # The doing of a client is no failure of the server.
        failed = job.ending is not None and WHOSE[job.ending] is not Whose.CLIENT and job.ending is not Ending.ANSWERED
        if job.ending is not None:
            attributes["tsctl.ending"] = job.ending.name.lower()
        self._tracer.traces.offer(
            Span(
                f"predict {self._tracer.name}", self.context, self._caller, SERVER, self._began + self.wall,
                now + self.wall, attributes, text if failed else None, events=events, foreign=bool(self._caller),
            )
        )  # fmt: skip


class ModelTracer:
    """The tracer of one version: watches its requests and its batches."""

    def __init__(self, traces: Traces, name: str, version: str, exemplars: Exemplars, emitted: Emitted) -> None:
        self.traces = traces
        self.exemplars = exemplars
        self.name = name
        self.version = version
        self.ratio = traces.ratio
        self._emitted = emitted

    def __repr__(self) -> str:
        return f"<ModelTracer of {self.name}/{self.version}>"

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        """Set the trace of a request that is to be recorded, and tell its handler of that."""
        draw = random.random()
        if draw >= self.ratio and not names_caller(job.headers):
            return False
        caller = caller_of(job.headers)
        if draw < self.ratio if caller is None else caller.sampled:
            trace = RequestTrace(self, job, caller, asked.method, asked.target.partition("?")[0], asked.began)
            job.watchers += (trace,)
            job.headers = with_context(job.headers, trace.worker)
        return False

    def returned(self, worker: int, batch: Batch, outcomes: Sequence[Outcome], seconds: float, now: float) -> None:
        traces = [(job, each) for job in batch.jobs for each in job.watchers if isinstance(each, RequestTrace)]
        if not traces:
            return
        stages, self._emitted.latest = stages_in(self._emitted.latest), ()
        outcome = outcomes[0]  # all of a batch have the same fate
        if outcome.fate is Fate.UNSTARTED:
            return  # the jobs go on waiting
        error = None if outcome.fate is Fate.ANSWERED else outcome.reason or "the worker did not answer in time"
        began = now - seconds if batch.reason == "ahead" and seconds else batch.sent
        attributes: Attributes = {
            "tsctl.batch.id": batch.id, "tsctl.batch.size": len(batch.jobs), "tsctl.batch.reason": batch.reason,
            "tsctl.batch.limit": batch.limit, "tsctl.worker.pid": worker, "tsctl.worker.seconds": seconds,
            "tsctl.model.name": self.name, "tsctl.model.version": self.version,
        }  # fmt: skip
        wall, whole = traces[0][1].wall, new_trace()
        links = [trace.worker for _, trace in traces]
        offer = self.traces.offer
        offer(Span(f"batch {self.name}", whole, "", INTERNAL, began + wall, now + wall, attributes, error, links))
        for job, trace in traces:
            self.offer_queued(trace, began)
            wall = trace.wall
            offer(
                Span(
                    "worker", trace.worker, trace.context.span_id, INTERNAL, began + wall, now + wall, attributes,
                    error, (whole,),
                )
            )  # fmt: skip
            for name, start, end in placed(stages, began, now, seconds):
                own = trace.worker.beside(new_span_id())
                offer(Span(name, own, trace.worker.span_id, INTERNAL, start + wall, end + wall, {}))
            if job.phase is JobPhase.QUEUED:  # it is run again
                trace.queued = now
                trace.worker = trace.worker.beside(new_span_id())
                job.headers = with_context(job.headers, trace.worker)

    def offer_queued(self, trace: RequestTrace, until: float) -> None:
        """Offer the span of a time in which a job waited."""
        context = trace.context.beside(new_span_id())
        began, ended = trace.queued + trace.wall, max(until, trace.queued) + trace.wall
        self.traces.offer(Span("queued", context, trace.context.span_id, INTERNAL, began, ended, {}))


def stages_in(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Return the seconds of each stage of a handler that was measured."""
    return {
        each.labels[0][1]: max(0.0, each.value)
        for each in measurements
        if each.name == STAGE_TIME and len(each.labels) == 1 and each.labels[0][1] in STAGES
    }


def placed(stages: dict[str, float], began: float, ended: float, seconds: float) -> list[tuple[str, float, float]]:
    """Return name, begin and end of each stage, one behind the other.

    Args:
        stages: the seconds of those that were reported; of several batches if a worker runs several at a time.
        seconds: that the batch took in the worker, in the middle of the time from `began` to `ended`.
    """
    at = began + max(0.0, ended - began - seconds) / 2
    spans = []
    for name in STAGES:
        if name in stages:
            end = min(ended, at + stages[name])
            spans.append((name, at, end))
            at = end
    return spans
