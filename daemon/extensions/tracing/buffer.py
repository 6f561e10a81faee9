"""The spans that wait for a collector, the thread that sends them, and the service of both.

The daemon never waits for a collector: while one is slow or away, spans wait, up to `MOST_WAITING`, and further ones
are dropped and counted. Spans that the collector did not take are not sent again.
"""

import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.core.texts.json_text import whole_text
from tsctl.daemon.declarations import Samples
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.tracing.context import TraceContext
from tsctl.daemon.extensions.tracing.tracer import SERVER, Span, Traces
from tsctl.daemon.models.version import ModelVersion

MOST_WAITING = 8192  # spans; about a kilobyte each
MOST_AT_ONCE = 512
DELAY = 1.0  # seconds in which spans are collected, before they are sent
FLUSH = 2.0  # seconds that the last spans have at a stop; none while the collector is away

_log = logging.getLogger("tsctl.daemon.tracing")


class Sender(Protocol):
    """The way to a collector; used by one thread."""

    def send(self, spans: Sequence[Span]) -> str | None:
        """Send spans; return why they were not delivered, or None if they were."""

    def close(self) -> None:
        """End a `send` of another thread soon."""


class SpanBuffer:
    """Takes spans from the event loop, and sends them from a thread, which the first span starts.

    Args:
        report: called from that thread, with a sentence, when spans are lost; once until some are delivered again.

    Attributes:
        counts: spans by what became of them: `sent`, `lost` on the way, or `dropped` as too many waited.
    """

    def __init__(self, sender: Sender, report: Callable[[str], None], *, delay: float = DELAY) -> None:
        self.counts: Counter[str] = Counter(sent=0, lost=0, dropped=0)
        self._sender = sender
        self._report = report
        self._delay = delay
        self._waiting: deque[Span] = deque()
        self._told = 0  # of those that were dropped
        self._away = False  # the last spans were not delivered
        self._some = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<SpanBuffer {len(self._waiting)} waiting, {dict(self.counts)}>"

    def offer(self, span: Span) -> None:
        """Take a span, to be sent later; drop it if too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            self.counts["dropped"] += 1  # by the event loop alone; the others by the thread
            return
        self._waiting.append(span)
        if not self._some.is_set():
            if self._thread is None and not self._begin():
                self._waiting.pop()
                self.counts["dropped"] += 1
                return
            self._some.set()

    def _begin(self) -> bool:
        """Start the thread; return False where the system has no room for one: the next span tries again."""
        thread = threading.Thread(target=self._run, name="traces", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def close(self, patience: float = FLUSH) -> None:
        """Send the remaining spans, within `patience` seconds; at once if the collector is away."""
        self._closing.set()
        self._some.set()
        if self._thread is None:
            return
        self._thread.join(0.0 if self._away else patience)
        if self._thread.is_alive():
            self._sender.close()
            self._thread.join(0.5)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._some.wait()
            self._closing.wait(self._delay)
            self._some.clear()
            try:
                while self._waiting and not (self._away and self._closing.is_set()):
                    self.send_some()
                self._tell_overflow()
            except Exception:  # noqa: BLE001 - of a report, say: without this thread no span would ever be sent
                _log.exception("sending traces has raised, and goes on")
        self.counts["lost"] += len(self._waiting)
        self._waiting.clear()
        self._sender.close()

    def send_some(self) -> None:
        """Send the oldest spans; called by the thread."""
        spans = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
        try:
            failure = self._sender.send(spans)
        except Exception as error:  # noqa: BLE001 - a library's bug; the thread goes on
            failure = f"{type(error).__name__}: {error}"
        if failure is None:
            self.counts["sent"] += len(spans)
            self._away = False
            return
        self.counts["lost"] += len(spans)
        if not self._away:
            self._away = True
            self._report(f"traces are lost until the collector takes them again: {failure}")

    def _tell_overflow(self) -> None:
        """Report spans that were dropped although the collector takes some: it is too slow for them."""
        dropped = self.counts["dropped"]
        more, self._told = dropped - self._told, dropped
        if more and not self._away:
            self._report(f"{more} spans were dropped: more than {MOST_WAITING} waited for the collector")


_NANO = 1_000_000_000
_FINE = Status(StatusCode.UNSET)


class OtlpSender:
    """The way to a collector: OTLP over HTTP, by opentelemetry's own exporter.

    Imported only where traces are asked for: the library's imports take 0.3 s and 20 MB.

    Sends spans to one collector. Its headers, certificates and timeout are those of OpenTelemetry's variables.

    Args:
        endpoint: the URL that spans are sent to, with its path.
        version: of tsctl.
    """

    def __init__(self, endpoint: str, version: str) -> None:
        library = logging.getLogger("opentelemetry")  # a line for each failure: they are told once, as an event
        library.propagate = False
        library.addHandler(logging.NullHandler())
        self._exporter = OTLPSpanExporter(endpoint=endpoint)
        self._endpoint = endpoint
        self._resource = resource_of(version)
        self._scope = InstrumentationScope("tsctl", version)

    def send(self, spans: Sequence[Span]) -> str | None:
        readables = [readable(span, self._resource, self._scope) for span in spans]
        delivered = self._exporter.export(readables) is SpanExportResult.SUCCESS
        return None if delivered else f"no answer, or a refusal, from {self._endpoint}"

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def resource_of(version: str) -> Resource:
    """Return what all spans of this daemon have in common; OpenTelemetry's variables add to it and win."""
    found = Resource.create()
    ours = Resource({"service.version": version, "process.pid": os.getpid()})
    named = str(found.attributes.get(SERVICE_NAME, ""))
    if named.startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "tsctl"}))
    return ours.merge(found)


def readable(span: Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    """Convert a span; replace characters that UTF-8 does not have, which the library's encoder would reject."""
    parent = span.context.beside(span.parent) if span.parent else None
    return ReadableSpan(
        name=whole_text(span.name),
        context=_context(span.context),
        parent=None if parent is None else _context(parent, foreign=span.foreign),
        resource=resource,
        attributes={
            key: whole_text(value) if isinstance(value, str) else value for key, value in span.attributes.items()
        },
        events=[Event(whole_text(name), timestamp=int(at * _NANO)) for name, at in span.events],
        links=[Link(_context(link)) for link in span.links],
        kind=SpanKind.SERVER if span.kind == SERVER else SpanKind.INTERNAL,
        status=_FINE if span.error is None else Status(StatusCode.ERROR, whole_text(span.error)),
        start_time=int(span.began * _NANO),
        end_time=int(span.ended * _NANO),
        instrumentation_scope=scope,
    )


def _context(context: TraceContext, *, foreign: bool = False) -> SpanContext:
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), foreign, TraceFlags(context.flags), state)


class TracingService(Service):
    """The service; importing it takes 0.3 s and 20 MB, for those who ask for traces."""

    def __init__(self, kernel: Kernel) -> None:
        self._events, self._soon = kernel.observation.events, kernel.observation.soon
        self._buffer = SpanBuffer(OtlpSender(kernel.config.trace_destination.url, tsctl_version()), self._report)
        self._traces = Traces(kernel.clock, kernel.config.trace_sample, self._buffer.offer)

    def follow(self, model: ModelVersion) -> None:
        self._traces.follow(model)

    def samples(self) -> Samples:
        return ([((outcome,), count) for outcome, count in self._buffer.counts.items()],)

    def close(self) -> None:
        """Send the last spans, for a bounded time."""
        self._buffer.close()

    def _report(self, sentence: str) -> None:
        """Report lost spans; called from another thread."""
        self._soon(partial(self._events.add, "traces-lost", sentence))
