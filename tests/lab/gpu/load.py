"""One run of the load generator of `tsctl bench`: a closed loop of clients over connections that stay."""

from typing import NamedTuple

from tsctl.generator import generator


class Load(NamedTuple):
    """The results; latencies in seconds.

    Attributes:
        rate: good answers a second.
        errors: requests without a good answer.
    """

    rate: float
    errors: int
    p50: float
    p99: float


def run(port: int, target: str, body: bytes, clients: int, seconds: float) -> Load:
    """Send `body` for so many seconds.

    Raises:
        CliError: the first request failed, or the generator did.
    """
    order = {"host": "127.0.0.1", "port": port, "target": target, "connections": clients, "seconds": seconds}
    with generator(order, body) as running:
        *_, last = running.events()
    return Load(last["requestsPerSecond"], last["errors"], last["latency"]["p50"], last["latency"]["p99"])
