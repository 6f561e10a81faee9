"""The figures: responses by status, failures by kind, latencies by bucket.

Each power of two has 128 buckets, so any percentile is exact to 0.4 %, for a run of any length, in a few kilobytes.
(The idea of HdrHistogram, without its code.)
"""

import json
import math
import time
from bisect import bisect_left
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCHEDSTAT = Path("/proc/self/schedstat")  # nanoseconds of the main thread: run, waited; and a count


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Seconds since the process began, or between two readings."""

    used: float
    waited: float

    def __sub__(self, before: "ProcessorTime") -> "ProcessorTime":
        return ProcessorTime(self.used - before.used, self.waited - before.waited)


def look() -> ProcessorTime:
    """Read the clocks; `waited` is 0.0 if the kernel does not count it."""
    try:
        waited = int(_SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        waited = 0.0
    return ProcessorTime(time.process_time(), waited)


PARTS = 128  # buckets for each doubling
REASON = 300  # characters
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


class Latencies:
    """Latencies in seconds, by bucket.

    Attributes:
        count, sum, least, most: of all values; the last two are 0.0 without any.
    """

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.least = 0.0
        self.most = 0.0
        self._buckets: Counter[int] = Counter()

    def count_latency(self, seconds: float) -> None:
        """Count one latency in seconds, above 0."""
        self._buckets[_bucket(seconds)] += 1
        self.sum += seconds
        if seconds > self.most:
            self.most = seconds
        if seconds < self.least or not self.count:
            self.least = seconds
        self.count += 1

    def percentile(self, percent: float) -> float:
        """Return the least value in seconds that `percent` % of all do not exceed (nearest rank); 0.0 if none."""
        rank = max(1, math.ceil(self.count * percent / 100))
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return min(max(_middle(bucket), self.least), self.most)
        return 0.0

    def bars(self) -> list[tuple[float, int]]:
        """Return the buckets combined for a drawing.

        Returns:
            (upper bound in seconds, count), with round bounds; the slowest thousandth, which may be far away, is all in
            the last one, whose bound is the largest value.
        """
        if not self.count:
            return []
        bounds = bounds_between(self.least, self.percentile(99.9))
        counts = [0] * (len(bounds) + 1)
        for bucket, count in self._buckets.items():
            counts[bisect_left(bounds, _middle(bucket))] += count
        bars = list(zip((*bounds, max(self.most, bounds[-1])), counts, strict=True))
        return bars if counts[-1] else bars[:-1]


def bounds_between(least: float, most: float) -> list[float]:
    """Return round bounds, at most 17, of which the last is at least `most`.

    Evenly spaced if the values are of one order of magnitude, otherwise 1, 2, 5, 10, 20, ...
    """
    if most > 20 * least:
        exponents = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        series = [digit * 10.0**exponent for exponent in exponents for digit in (1, 2, 5)]
    else:
        rough = max((most - least) / 12, least / 50)
        step = next(step for step in _steps(rough) if step >= rough)
        series = [index * step for index in range(math.ceil(least / step), math.ceil(most / step) + 1)]
    first = bisect_left(series, least)
    return [round(bound, 9) for bound in series[first : bisect_left(series, most) + 1]]


def _steps(rough: float) -> list[float]:
    exponent = math.floor(math.log10(rough))
    return [digit * 10.0**exponent for digit in (1, 2, 5, 10)]


def _bucket(seconds: float) -> int:
    fraction, exponent = math.frexp(seconds)  # seconds = fraction · 2^exponent, fraction in [0.5, 1)
    return exponent * PARTS + int((fraction - 0.5) * (2 * PARTS))


def _lower(bucket: int) -> float:
    exponent, part = divmod(bucket, PARTS)
    return math.ldexp(0.5 + part / (2 * PARTS), exponent)


def _middle(bucket: int) -> float:
    return (_lower(bucket) + _lower(bucket + 1)) / 2


class Tally:
    """The figures of one run.

    Attributes:
        statuses: responses by HTTP status, or by the name of gRPC's code.
        reasons: why, by status, the first of these responses is an error.
        failures: requests without a response: `closed`, `refused`, `timeout`, `unanswered` at the end.
        latencies: of good responses (2xx, OK); quick rejections would flatter the figures.
        body_bytes: of all responses' bodies.
        closed_at: when the last request started, on the clock of the run; 0.0 while requests still start.
        in_time: good responses until then. Throughput counts these; latencies also the later ones.
    """

    def __init__(self) -> None:
        self.statuses: Counter[int | str] = Counter()
        self.reasons: dict[int | str, str] = {}
        self.failures: Counter[str] = Counter()
        self.latencies = Latencies()
        self.body_bytes = 0
        self.closed_at = 0.0
        self.in_time = 0

    def close(self, now: float) -> None:
        """Record that no more requests start."""
        self.closed_at = now
        self.in_time = self.latencies.count

    @property
    def ended(self) -> int:
        """Number of requests that were answered or failed."""
        return self.statuses.total() + self.failures.total()

    @property
    def errors(self) -> int:
        return self.ended - self.latencies.count

    def answered(self, status: int | str, length: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.body_bytes += length
        if status == "OK" or (isinstance(status, int) and 200 <= status < 300):
            self.latencies.count_latency(seconds)

    def explain(self, status: int | str, body: bytes) -> None:
        """Keep the reason of the first error with a status: its `message`, or a line of another text."""
        if status in self.reasons:
            return
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            text = json.loads(text)["message"]
        self.reasons[status] = str(text).strip().partition("\n")[0][:REASON]

    def failed(self, kind: str) -> None:
        self.failures[kind] += 1

    def document(self, seconds: float, processor: ProcessorTime) -> dict[str, Any]:
        """Return all figures, for JSON.

        Args:
            seconds: duration of sending.
            processor: of this process, meanwhile.
        """
        found = self.latencies
        return {
            "requests": self.ended,
            "errors": self.errors,
            "statuses": dict(sorted((str(status), count) for status, count in self.statuses.items())),
            "reasons": {str(status): reason for status, reason in self.reasons.items() if reason},
            "failures": dict(sorted(self.failures.items())),
            "seconds": seconds,
            "requestsPerSecond": (self.in_time if self.closed_at else found.count) / seconds if seconds else 0.0,
            "bodyBytesPerSecond": self.body_bytes / seconds if seconds else 0.0,
            "generatorCpu": processor.used / seconds if seconds else 0.0,
            "generatorWaited": processor.waited / seconds if seconds else 0.0,
            "latency": {
                "mean": found.sum / found.count if found.count else 0.0,
                "min": found.least,
                **{f"p{percent:g}": found.percentile(percent) for percent in PERCENTILES},
                "max": found.most,
            },
            "histogram": [{"upTo": bound, "count": count} for bound, count in found.bars()],
        }
