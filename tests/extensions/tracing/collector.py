"""A collector of OpenTelemetry on a port of this machine: it decodes OTLP over HTTP, and keeps the spans."""

import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.e2e.served import eventually
from tests.kit.web import web_server

FAILED = Status.STATUS_CODE_ERROR


class Received(NamedTuple):
    """A span. Ids are hexadecimal, times seconds since the epoch.

    Attributes:
        links: ids of spans.
        failed: its status is that of an error.
        resource: what all spans of its process have in common.
    """

    name: str
    trace: str
    id: str
    parent: str
    began: float
    ended: float
    attributes: dict[str, Any]
    links: list[str]
    events: list[str]
    failed: bool
    state: str
    resource: dict[str, Any]


class Collector:
    """A collector that listens from its making until `close`."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self._serving = ExitStack()
        self.url = self._serving.enter_context(web_server(self._answer))
        self.close = self._serving.close

    def _answer(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers["content-length"]))
        known = asked.path == "/v1/traces" and asked.headers["content-type"] == "application/x-protobuf"
        if known:
            body = gzip.decompress(body) if asked.headers["content-encoding"] == "gzip" else body
            self.spans += spans_of(body)
        asked.send_response(200 if known else 404)
        asked.send_header("content-length", "0")
        asked.end_headers()

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def wait_for(self, name: str, count: int = 1) -> list[Received]:
        """Wait until there are so many spans of a name, and return them in the order of their beginning."""
        eventually(lambda: len(self.named(name)) >= count, f"{count} spans {name}")
        return sorted(self.named(name), key=lambda span: span.began)

    def children(self, span: Received) -> dict[str, list[Received]]:
        """Return the parts of a span, by name, in the order of their beginning."""
        found: dict[str, list[Received]] = {}
        for each in sorted(self.spans, key=lambda each: each.began):
            if each.parent == span.id and each.trace == span.trace:
                found.setdefault(each.name, []).append(each)
        return found


def spans_of(body: bytes) -> Iterator[Received]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = values_of(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Received(
                    span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
                    span.start_time_unix_nano / 1e9, span.end_time_unix_nano / 1e9, values_of(span.attributes),
                    [link.span_id.hex() for link in span.links], [event.name for event in span.events],
                    span.status.code == FAILED, span.trace_state, resource,
                )  # fmt: skip


def values_of(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
