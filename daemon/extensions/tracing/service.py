"""The traces of a daemon on their way to a collector, as a service; there is none while traces are off."""

from functools import partial

from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.declarations import Samples
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.tracing.buffer import OtlpSender, SpanBuffer
from tsctl.daemon.extensions.tracing.tracer import Traces
from tsctl.daemon.models.version import ModelVersion


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
        """Send the last spans, for a bounded time (buffer.py)."""
        self._buffer.close()

    def _report(self, sentence: str) -> None:
        """Report lost spans; called from another thread."""
        self._soon(partial(self._events.add, "traces-lost", sentence))
