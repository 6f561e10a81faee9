"""Clients in a closed loop over connections that stay: a process of its own, that measures what they see.

python -m tests.benchmarks.clients ADDRESS TARGET CLIENTS SECONDS < BODY
"""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, cast

import httptools
import uvloop

RAMP = 0.15  # of the time; it does not count


@dataclass(frozen=True, slots=True)
class Seen:
    """What the clients saw; latencies in seconds."""

    throughput: float
    p50: float
    p99: float
    errors: int


class Client(asyncio.Protocol):
    """Sends its next request as soon as it has the answer."""

    def __init__(self, request: bytes, seen: list[tuple[float, float]], errors: list[int]) -> None:
        self._request = request
        self._seen = seen
        self._errors = errors
        self._sent = 0.0
        self._parser = httptools.HttpResponseParser(self)
        self._transport = cast(asyncio.Transport, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        if self._parser.get_status_code() == 200:
            self._seen.append((now, now - self._sent))
        else:
            self._errors.append(self._parser.get_status_code())
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)


async def main(address: str, target: str, clients: int, seconds: float, body: bytes) -> None:
    host, _, port = address.partition(":")
    head = f"POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {len(body)}\r\n\r\n"
    seen: list[tuple[float, float]] = []
    errors: list[int] = []
    loop = asyncio.get_running_loop()
    for _ in range(clients):
        await loop.create_connection(lambda: Client(head.encode() + body, seen, errors), host, int(port))
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    counted = [latency for moment, latency in seen if moment >= began + RAMP * seconds]
    ordered = sorted(counted)
    result = {
        "throughput": len(ordered) / (time.perf_counter() - began - RAMP * seconds),
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[-(-len(ordered) * 99 // 100) - 1],
        "errors": len(errors),
    }
    print(json.dumps(result))


def drive(url: str, target: str, clients: int, seconds: float, body: bytes) -> Seen:
    """Run so many clients for so long, in a process of their own."""
    address = url.removeprefix("http://")
    command = [sys.executable, "-m", "tests.benchmarks.clients", address, target, str(clients), str(seconds)]
    done = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return Seen(**told)


if __name__ == "__main__":
    _, address, target, clients, seconds = sys.argv
    uvloop.run(main(address, target, int(clients), float(seconds), sys.stdin.buffer.read()))
