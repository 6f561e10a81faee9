"""Clients in a closed loop over connections that stay: `tsctl bench`, after a warm-up."""

import json
from dataclasses import dataclass

from tests.e2e.served import Served

WARM_UP = 1.0  # seconds; the daemon learns who comes how often


@dataclass(frozen=True, slots=True)
class Seen:
    """The clients' results; latencies in seconds."""

    throughput: float
    p50: float
    p99: float
    errors: int


def drive(served: Served, model: str, clients: int, seconds: float, body: bytes) -> Seen:
    """Run so many clients for so long."""
    file = served.folder / "body"
    file.write_bytes(body)
    _bench(served, model, clients, WARM_UP)
    found = json.loads(_bench(served, model, clients, seconds))
    answered = int(found["statuses"].get("200", 0))
    latency = found["latency"]
    return Seen(found["requestsPerSecond"], latency["p50"], latency["p99"], found["requests"] - answered)


def _bench(served: Served, model: str, clients: int, seconds: float) -> str:
    return served.tsctl("bench", model, "body", "--connections", str(clients), "--seconds", str(seconds), "--json")
