"""Documents as the daemon answers them, with the values that a test is about."""

from typing import Any

BOUNDS = [0.01, 0.02, 0.05]  # seconds
NAME = "a-model-whose-name-has-forty-characters1"


def model(name: str = "m", version: str = "1.0", **facts: Any) -> dict[str, Any]:
    """Return a model of a live document: one ready worker and no requests."""
    return {
        "name": name, "version": version, "default": True, "state": "ready", "troubles": [],
        "ready": 1, "wanted": 1, "restarting": 0,
        "batchSize": 8, "maxBatchDelay": 10.0, "policy": "auto", "queued": 0, "running": 0, "oldestMs": None,
        "arrivalsPerSecond": 0.0,
        "recent": {"seconds": 60, "requests": 0, "errors": 0, "p50Ms": None, "p99Ms": None},
        "requests": {"total": 0, "errors": 0, "codes": {}}, "refused": {}, "expired": {},
        "latency": {"bounds": BOUNDS, "counts": [0, 0, 0, 0], "sum": 0.0},
        "batches": {"total": 0, "requests": 0},
        "workers": [{"pid": 7, "state": "READY", "memory": 200 * 2**20, "cpuSeconds": 1.0}],
        "lastError": None,
    } | facts  # fmt: skip


def live(time: float, *models: dict[str, Any], started: float = 1000.0) -> dict[str, Any]:
    """Return a live document."""
    up = time - started
    gpus = [{"name": "A Card", "uuid": f"GPU-{number}", "memory": 2**32} for number in range(8)]
    about = {"time": time, "started": started, "upSeconds": up, "pid": 42, "version": "9.9", "gpus": gpus}
    return about | {"models": list(models)}


def answered(total: int, failed: int = 0, **facts: Any) -> dict[str, Any]:
    """Return a model after so many requests, in batches of four that took between 10 and 20 ms."""
    codes = {"200": total - failed} | ({"503": failed} if failed else {})
    return model(
        requests={"total": total, "errors": failed, "codes": codes},
        latency={"bounds": BOUNDS, "counts": [0, total, 0, 0], "sum": total * 0.015},
        batches={"total": total // 4, "requests": total},
        **facts,
    )


def event(text: str, level: str = "warning", name: str = "m", **facts: Any) -> dict[str, Any]:
    """Return an event."""
    return {
        "sequence": 1, "time": 2000.0, "level": level, "kind": "worker-exited", "model": name, "version": "1.0",
        "worker": 7, "requests": [], "text": text,
    } | facts  # fmt: skip


def batch(sequence: int, size: int = 4, **facts: Any) -> dict[str, Any]:
    """Return a batch."""
    return {
        "sequence": sequence, "time": 2000.0 + sequence / 1000, "version": "1.0", "size": size, "limit": 8,
        "reason": "delay", "meaning": "a request had been held for the maximum delay", "waitedMs": 10.0, "queued": 0,
        "worker": 7, "tookMs": 20.0, "failed": 0,
    } | facts  # fmt: skip
