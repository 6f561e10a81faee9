"""A result of `tsctl tune`, as the command leaves it in the state directory."""

from typing import Any


def setting(workers: int, size: int, delay: float, rate: float, p99: float, **more: Any) -> dict[str, Any]:
    return {
        "workers": workers, "threads": 2 // workers, "batchSize": size, "maxBatchDelay": delay, "batching": "auto",
        "failure": "", "requestsPerSecond": rate, "p50": p99 * 0.8, "p99": p99, "cpu": 0.0004, "gain": rate / 119.0,
        "noise": 0.02,
    } | more  # fmt: skip


RESULT: dict[str, Any] = {
    "model": "labels", "version": "1.0", "time": 1_700_000_000.0, "rounds": 3, "seconds": 2.0,
    "load": {"text": "8 clients that wait for their answers", "clients": 8, "requestsPerSecond": None},
    "settings": [
        setting(1, 1, 100.0, 119.0, 0.0701),
        setting(1, 8, 20.0, 720.0, 0.0127),
        setting(2, 16, 10.0, 730.0, 0.0263),
        {
            "workers": 2, "threads": 0, "batchSize": 32, "maxBatchDelay": 20.0, "batching": "greedy",
            "failure": "the model does not load: out of memory",
        },
    ],
    "recommended": 1,
    "verdict": "Serve it with batch size 8, delay at most 20 ms, auto, 1 worker: 6.05 (± 0.02) times.",
    "notes": [], "commands": ["tsctl set labels --batch-size 8 --max-delay 20 --batching auto"],
}  # fmt: skip
