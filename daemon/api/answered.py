"""The notes of each answered request, over HTTP and gRPC: counters, logs, and the event of one too large."""

from collections.abc import Callable

from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.http.access_log import AccessLog
from tsctl.daemon.http.messages import Request
from tsctl.daemon.metrics.metrics import Metrics


class AnsweredRequests:
    """Notes answered requests. A class, because it is compiled: as a function it costs 1 % of a request.

    Args:
        lines: None to write none.

    Attributes:
        copy: called with each answered request, its status and its seconds; None for nothing.
    """

    def __init__(
        self,
        metrics: Metrics,
        recurring: Recurring,
        lines: AccessLog | None = None,
    ) -> None:
        self._metrics = metrics
        self._recurring = recurring
        self._lines = lines
        self.copy: Callable[[Request, int, float], None] | None = None

    def note(self, request: Request, status: int, seconds: float) -> None:
        """Note a request; `seconds` is the time from its receipt to its answer."""
        self._metrics.answered(status)
        if request.client is not None:
            self._metrics.answered_to(request.client.name, status)
        if status == 413:
            text = "a request was larger than its address allows (413)"
            self._recurring.note("limit", text, request=request.id)
        if self._lines is not None:
            self._lines.note(request, status, seconds)
        if self.copy is not None:
            self.copy(request, status, seconds)
