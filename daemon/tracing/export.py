"""The daemon's traces: off unless the operator asks for them, and then on their way to a collector."""

from collections import Counter
from collections.abc import Callable, Mapping

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.tracing.buffer import Sender, SpanBuffer
from tsctl.daemon.tracing.endpoint import check, endpoint_of, installed
from tsctl.daemon.tracing.tracer import Traces


class TraceExport:
    """The daemon's traces.

    Args:
        version: of tsctl.

    Attributes:
        notes: sentences for the operator, if something is asked for and missing.
        sender: the way to the collector; None while traces are off.

    Raises:
        StartError: traces are asked for, and what sends them is not installed.
    """

    def __init__(self, config: Config, environment: Mapping[str, str], version: str) -> None:
        self.notes: tuple[str, ...] = ()
        self.sender: Sender | None = None
        self._ratio = config.trace_sample
        self._buffer: SpanBuffer | None = None
        endpoint = endpoint_of(config, environment)
        if endpoint is None:
            return
        missing = check(endpoint, present=installed())
        if missing is not None:
            self.notes = (f"warning: {missing}",)
            return
        from tsctl.daemon.tracing.otlp import OtlpSender  # 0.3 s and 20 MB, for those who ask for traces

        self.sender = OtlpSender(endpoint.url, version)

    def begin(self, clock: Clock, report: Callable[[str], None]) -> Traces | None:
        """Return what records requests; None while traces are off.

        Args:
            report: called from another thread with a sentence when spans are lost.
        """
        if self.sender is None:
            return None
        self._buffer = SpanBuffer(self.sender, report)
        return Traces(clock, self._ratio, self._buffer.offer)

    @property
    def counts(self) -> Counter[str] | None:
        """The spans by what became of them; None while traces are off."""
        return None if self._buffer is None else self._buffer.counts

    def close(self) -> None:
        """Send the last spans, for a bounded time (buffer.py)."""
        if self._buffer is not None:
            self._buffer.close()
