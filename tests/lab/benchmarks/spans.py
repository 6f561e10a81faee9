"""Processor time of a span's bytes: ours against those that opentelemetry makes, in turns.

python -m tests.lab.benchmarks.spans
"""

import time
from collections.abc import Callable
from statistics import median

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from daemon.tracing.encoding import Encoder
from daemon.tracing.otlp import readable
from daemon.tracing.span import SERVER, Span
from daemon.tracing.tracer import new_trace

SPANS = 2000
ROUNDS = 9


def spans() -> list[Span]:
    """Return spans as those of `predict MODEL`: only the request's id differs."""
    return [
        Span(
            "predict m", new_trace(), "", SERVER, 1e9, 1e9 + 1,
            {
                "http.request.method": "POST", "url.path": "/predictions/m", "tsctl.request.id": f"request {number}",
                "tsctl.model.name": "m", "tsctl.model.version": "1.0", "tsctl.attempts": 1,
                "http.response.status_code": 200,
            },
            events=[("received", 1e9)],
        )
        for number in range(SPANS)
    ]  # fmt: skip


def main() -> None:
    resource, scope = Resource({"service.name": "tsctl"}), InstrumentationScope("tsctl", "1.0")
    encoder = Encoder(resource.attributes, "1.0")
    ways: dict[str, Callable[[list[Span]], object]] = {
        "tsctl": encoder.request,
        "opentelemetry": lambda spans: encode_spans(
            [readable(span, resource, scope) for span in spans]
        ).SerializePartialToString(),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            made = spans()
            began = time.process_time()
            way(made)
            taken[name].append((time.process_time() - began) / SPANS * 1e6)
    for name, times in taken.items():
        print(f"{name:14} {median(times):6.1f} µs a span")
    ratio = median(theirs / ours for ours, theirs in zip(taken["tsctl"], taken["opentelemetry"], strict=True))
    print(f"opentelemetry / tsctl: {ratio:.1f}")


if __name__ == "__main__":
    main()
