"""Triton's published way to measure: a closed loop of fixed concurrency, in windows, until three in a row agree.

Its Perf Analyzer measures windows of 5 s, and calls a result stable when of the last three the largest throughput and
the largest average latency are within 10 % of the smallest; after ten windows it gives up. Source: the options
`--measurement-interval`, `--stability-percentage` and `--max-trials` of
https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/perf_analyzer/docs/cli.html
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.lab.gpu.load import Load

WINDOW = 5.0  # seconds
RECENT = 3
WITHIN = 0.10
TRIALS = 10


@dataclass(frozen=True, slots=True)
class Stabilised:
    """The result over the last three windows.

    Attributes:
        rate: answers a second, their mean.
        latency: average of an answer, in seconds.
        p50, p99: the largest of the three, in seconds.
        windows: how many were measured.
        stable: the last three agree.
    """

    rate: float
    latency: float
    p50: float
    p99: float
    windows: int
    stable: bool


def agree(windows: Sequence[Load]) -> bool:
    """Return whether the last three agree in throughput and in average latency."""
    recent = windows[-RECENT:]
    return len(recent) == RECENT and all(
        min(values) > 0 and max(values) / min(values) <= 1 + WITHIN
        for values in ([each.rate for each in recent], [each.mean for each in recent])
    )


def measure(window: Callable[[], Load], trials: int = TRIALS) -> Stabilised:
    """Measure windows until three in a row agree, at most `trials`."""
    windows: list[Load] = []
    while len(windows) < trials and not agree(windows):
        windows.append(window())
    recent = windows[-RECENT:]
    rate = sum(each.rate for each in recent) / len(recent)
    answers = sum(each.rate for each in recent)
    latency = sum(each.mean * each.rate for each in recent) / answers if answers else 0.0
    p50, p99 = (max(getattr(each, name) for each in recent) for name in ("p50", "p99"))
    return Stabilised(rate, latency, p50, p99, len(windows), agree(windows))
