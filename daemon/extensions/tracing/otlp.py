"""The way to a collector: OTLP over HTTP, by opentelemetry's own exporter.

Imported only where traces are asked for: the library's imports take 0.3 s and 20 MB.
"""

import logging
import os
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from tsctl.daemon.core.texts.json_text import whole_text
from tsctl.daemon.extensions.tracing.context import TraceContext
from tsctl.daemon.extensions.tracing.span import SERVER, Span

_NANO = 1_000_000_000
_FINE = Status(StatusCode.UNSET)


class OtlpSender:
    """Sends spans to one collector. Its headers, certificates and timeout are those of OpenTelemetry's variables.

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
