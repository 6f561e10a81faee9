"""Examples of recorded requests in a latency histogram: one for each bucket, the latest."""

from bisect import bisect_left
from typing import NamedTuple

from tsctl.daemon.metrics.histogram import SECONDS


class LatencyExample(NamedTuple):
    """One request.

    Attributes:
        seconds: from its complete receipt to its answer.
        time: of the answer, seconds since the epoch.
    """

    trace_id: str
    seconds: float
    time: float


class Exemplars:
    """The examples of one version, in the buckets of `SECONDS`, for each outcome of `VersionMetrics.latencies`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], LatencyExample] = {}

    def __repr__(self) -> str:
        return f"<Exemplars {len(self._kept)} kept>"

    def note(self, outcome: str, example: LatencyExample) -> None:
        """Keep an example, in place of the one that its bucket had."""
        self._kept[outcome, bisect_left(SECONDS, example.seconds)] = example

    def of(self, outcome: str) -> dict[int, LatencyExample]:
        """Return the examples of an outcome by the index of their bucket."""
        return {index: example for (other, index), example in self._kept.items() if other == outcome}
