"""The traces of a daemon on their way to a collector, as a service; there is none while traces are off."""

from collections.abc import Iterable
from functools import partial

from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.extension import Kernel, MetricRow, Service
from tsctl.daemon.extensions.tracing.buffer import OtlpSender, SpanBuffer
from tsctl.daemon.extensions.tracing.tracer import Traces
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


class TracingService(Service):
    """The service; importing it takes 0.3 s and 20 MB, for those who ask for traces.

    Args:
        metric: the row of its spans.
    """

    def __init__(self, kernel: Kernel, metric: MetricRow) -> None:
        self._metric = metric
        self._events, self._soon = kernel.events, kernel.soon
        self._buffer = SpanBuffer(OtlpSender(kernel.config.trace_destination.url, tsctl_version()), self._report)
        self._traces = Traces(kernel.clock, kernel.config.trace_sample, self._buffer.offer)

    def attach(self, model: ModelVersion) -> None:
        self._traces.attach(model)

    def families(self) -> Iterable[MetricFamily]:
        row, counts = self._metric, self._buffer.counts
        yield family(row.name, row.kind, row.help, [({"outcome": outcome}, n) for outcome, n in counts.items()])

    def close(self) -> None:
        """Send the last spans, for a bounded time (buffer.py)."""
        self._buffer.close()

    def _report(self, sentence: str) -> None:
        """Report lost spans; called from another thread."""
        self._soon(partial(self._events.add, "traces-lost", sentence))
