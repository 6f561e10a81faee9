"""The listener of measurements, as the counters see it; an extension that writes each value somewhere is one."""

from typing import Protocol


class MetricsListener(Protocol):
    """Gets what is counted, when it is counted."""

    def sent(self, status: int) -> None:
        """Note an answer on any address."""

    def requested(self, model: str, version: str) -> None:
        """Note a request; `version` is `default` if the request named none."""

    def waited(self, model: str, version: str, seconds: float) -> None:
        """Note the time until a worker began a request."""

    def answered(self, model: str, version: str, seconds: float) -> None:
        """Note the time from a request to its answer."""

    def batch_returned(self, model: str, ids: str, inside: float, overhead: float, handler: float | None) -> None:
        """Note a batch: seconds in the worker, on the way, and in the handler if that is known."""
