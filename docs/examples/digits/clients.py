"""Clients that send images at the same time, each over one kept-alive connection."""

import http.client
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Run:
    """What the clients saw.

    Attributes:
        answers: by image.
        latencies: seconds, by image.
        seconds: from the first request to the last answer.
    """

    answers: list[Any]
    latencies: list[float]
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        return len(self.answers) / self.seconds

    def percentile(self, percent: float) -> float:
        """Seconds that this share of the requests stayed below."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def send_all(address: str, target: str, bodies: Sequence[bytes], clients: int) -> Run:
    """Send each body once, with `clients` requests on their way at any time.

    Args:
        address: HOST:PORT.
        target: the path of the prediction.
    """
    run = Run([None] * len(bodies), [0.0] * len(bodies))
    remaining = iter(range(len(bodies)))
    lock = threading.Lock()

    def client() -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.connect()
        start.wait()
        while True:
            with lock:
                index = next(remaining, None)
            if index is None:
                break
            began = time.perf_counter()
            connection.request("POST", target, bodies[index])
            response = connection.getresponse()
            body = response.read()
            run.latencies[index] = time.perf_counter() - began
            if response.status == 200:
                run.answers[index] = json.loads(body)
            else:
                run.errors.append(body.decode("utf-8", "replace"))
        connection.close()

    start = threading.Barrier(clients + 1)
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    run.seconds = time.perf_counter() - began
    return run
