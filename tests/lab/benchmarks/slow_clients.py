"""The daemon's memory while many slow clients upload: `python -m tests.lab.benchmarks.slow_clients`.

[--clients 1000] [--megabytes 10] [--seconds 20] [--receiving 512MiB] [--queue 256MiB]

Each client sends its body evenly over `--seconds`, once. Printed are the daemon's memory at its most (resident, with
what it has written into the arena) beside the bound: what it has without clients, the budget of bodies that are
being received, the queue's bytes, the two that a worker has, and one piece of 32 KiB for each connection.
Meanwhile a client with small requests on one connection measures how long they take.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import uvloop

from daemon.setting_values import parse_size
from tests.e2e.served import Served

MB, MIB = 10**6, 2**20
PIECE = 100_000  # bytes
SMALL = b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass
class Seen:
    statuses: Counter[str] = field(default_factory=Counter)
    most: int = 0  # bytes
    latencies: list[float] = field(default_factory=list)  # seconds


def memory_of(pid: int) -> int:
    """Bytes that a process has resident; of the arena what is in its map."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


async def upload(port: int, size: int, seconds: float, source: str, seen: Seen) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    except OSError as error:
        seen.statuses[f"no connection: {error.strerror}"] += 1
        return
    writer.write(b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
    answer = asyncio.ensure_future(reader.read(12))
    pieces = -(-size // PIECE)
    try:
        for number in range(pieces):
            writer.write(bytes(min(PIECE, size - number * PIECE)))
            await writer.drain()
            await asyncio.wait((answer,), timeout=seconds / pieces)
            if answer.done():
                break
        line = await asyncio.wait_for(answer, 120)
        seen.statuses[line[9:].decode() or "closed"] += 1
    except (OSError, TimeoutError) as error:
        seen.statuses[type(error).__name__] += 1
        answer.cancel()
    writer.close()


async def ask_small(port: int, seen: Seen) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        began = time.perf_counter()
        writer.write(SMALL)
        await reader.readuntil(b"}")
        seen.latencies.append(time.perf_counter() - began)
        await asyncio.sleep(0.02)


async def watch(pid: int, seen: Seen) -> None:
    while True:
        seen.most = max(seen.most, memory_of(pid))
        await asyncio.sleep(0.05)


async def crowd(pid: int, port: int, clients: int, size: int, seconds: float) -> Seen:
    seen = Seen()
    beside = [asyncio.ensure_future(watch(pid, seen)), asyncio.ensure_future(ask_small(port, seen))]
    sources = [f"127.0.0.{2 + number % 16}" for number in range(clients)]
    await asyncio.gather(*(upload(port, size, seconds, source, seen) for source in sources))
    for task in beside:
        task.cancel()
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--receiving", default="512MiB")
    parser.add_argument("--queue", default="256MiB")
    chosen = parser.parse_args()
    size = int(chosen.megabytes * MB)
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start("--max-receiving-bytes", chosen.receiving, "--queue-bytes", chosen.queue)
        try:
            served.register("sized")
            idle = memory_of(served.pid)
            port = int(served.url.rpartition(":")[2])
            seen = uvloop.run(crowd(served.pid, port, chosen.clients, size, chosen.seconds))
            after = memory_of(served.pid)
        finally:
            served.stop()
    bound = idle + parse_size(chosen.receiving) + parse_size(chosen.queue) + 2 * size + chosen.clients * 32 * 1024
    print(f"{chosen.clients} clients, {chosen.megabytes:g} MB each: {dict(seen.statuses)}")
    print(f"memory: {idle / MIB:.0f} MiB before, {seen.most / MIB:.0f} at most, {after / MIB:.0f} after")
    print(f"bound:  {bound / MIB:.0f} MiB  {'kept' if seen.most <= bound else 'PASSED'}")
    cuts = quantiles(seen.latencies, n=100)
    print(f"small requests beside: p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms")


if __name__ == "__main__":
    main()
