"""A result of `tsctl tune`, as the command leaves it in the state directory."""

from typing import Any


def point(
    workers: int, size: int, delay: float, batching: str, capacity: float, p99: float, **more: Any
) -> dict[str, Any]:
    return {
        "workers": workers, "threads": 2 // workers, "batchSize": size, "maxBatchDelay": delay, "batching": batching,
        "capacity": capacity, "throughput": min(capacity, 640.0), "p50": p99 * 0.8, "p99": p99, "meanBatch": size * 0.9,
        "keepsUp": True, "measured": False,
    } | more  # fmt: skip


RESULT: dict[str, Any] = {
    "model": "labels", "version": "1.0", "time": 1_700_000_000.0, "tried": 112,
    "load": {"text": "8 clients that wait for an answer", "clients": 8, "requestsPerSecond": None},
    "way": {"latency": 0.0002, "cost": 0.00005},
    "now": point(1, 1, 100.0, "auto", 119.0, 0.0701),
    "frontier": [
        point(2, 32, 20.0, "auto", 3030.0, 0.0381),
        point(2, 16, 10.0, "auto", 2240.0, 0.0263, measured=True),
        point(1, 8, 20.0, "auto", 720.0, 0.0127, measured=True),
        point(1, 4, 5.0, "greedy", 410.0, 0.0119, keepsUp=False),
    ],
    "recommended": 2, "rule": "the highest capacity of the settings whose p99 is within 5% of the least",
    "batchTimes": [], "notes": [], "commands": ["tsctl set labels --batch-size 8 --max-delay 20 --batching auto"],
}  # fmt: skip
