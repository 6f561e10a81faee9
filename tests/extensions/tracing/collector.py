"""A collector of OpenTelemetry on a port of this machine: it decodes OTLP over HTTP, and keeps the spans."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.e2e.served import eventually

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
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                known = self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
                if known:
                    body = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
                    collector.spans += spans_of(body)
                self.send_response(200 if known else 404)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

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
