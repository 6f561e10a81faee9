"""Traces of requests, for OpenTelemetry: recorded by the daemon, sent to a collector by a thread of its own.

endpoint   what the operator asks for, by settings or by OpenTelemetry's variables
context    a place in a trace, as the header `traceparent` has it
tracer     which requests are recorded; from the times of jobs and batches to spans
buffer     the spans that wait, bounded, and the thread that sends them; the service
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.setting_values import Setting, grouped, parse_collector, parse_ratio


class TracingExtension(Extension):
    name = "tracing"
    settings = grouped(
        "Logs and metrics",
        Setting(
            "trace_endpoint", None, parse_collector, "URL",
            "The OpenTelemetry collector that traces are sent to (OTLP over HTTP), or `none`"
            " [default: OTEL_EXPORTER_OTLP_ENDPOINT].",
        ),
        Setting(
            "trace_sample", 0.01, parse_ratio, "RATIO",
            "How many requests are traced, of those without a `traceparent`: 0 to 1.",
        ),
    )  # fmt: skip
    events = (
        EventRow("traces-lost", "warning", "a collector does not take the spans of traced requests, or is too slow"),
    )
    metrics = (
        MetricRow(
            "tsctl_trace_spans_total", "counter",
            "Spans of traced requests: sent to the collector, lost on the way, or dropped as too many waited",
            ("outcome",),
        ),
    )  # fmt: skip

    def configure(
        self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        del keys
        from tsctl.daemon.extensions.tracing.endpoint import endpoint_of, missing

        found = endpoint_of(values["trace_endpoint"], environment)
        warning = None if found is None else missing(found)
        values["trace_destination"] = found if warning is None else None
        return () if warning is None else (f"warning: {warning}",)

    def install(self, kernel: Kernel) -> Service | None:
        if kernel.config.trace_destination is None:
            return None
        from tsctl.daemon.extensions.tracing.endpoint import check

        check()
        from tsctl.daemon.extensions.tracing.buffer import TracingService

        return TracingService(kernel)
