"""The daemon's memory while clients do not read their answers: `python -m tests.lab.benchmarks.slow_readers`.

[--sending 256MiB] [--seconds 10]

Three crowds in turn, each of a daemon of its own: one client that asks for a stream of 600 MiB, one that pipelines 32
requests with answers of 34 MiB, and 64 clients that do the one or the other. None of them reads.
Printed is the daemon's memory at its most (resident) beside the bound: what it has without clients, the budget of
answers that wait, a piece of each connection, and twice the answer that each of the two workers is sending. Meanwhile a
client of another model, which reads, measures how long its requests take; it did so before, too. Ends with 1 if a bound
is passed.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import uvloop

from daemon.http.bounds.sending import PIECE
from daemon.setting_values import parse_size
from tests.e2e.served import Served
from tests.lab.benchmarks.slow_clients import MIB, Seen, memory_of, watch

STREAM, WHOLE = 600, 34  # MiB
WORKERS = 2
SMALL = b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"


class Crowd(NamedTuple):
    name: str
    streams: int  # clients
    pipelines: int  # further clients
    depth: int = 32  # requests that each of these sends


CROWDS = (
    Crowd(f"a stream of {STREAM} MiB", 1, 0),
    Crowd(f"32 pipelined answers of {WHOLE} MiB", 0, 1),
    Crowd("64 such clients, with 4 answers each", 4, 60, 4),
)


def request(count: int, *headers: str) -> bytes:
    lines = ["POST /predictions/pours HTTP/1.1", "Host: a", *headers, f"Content-Length: {len(str(count))}", "", ""]
    return "\r\n".join(lines).encode() + str(count).encode()


async def be_silent(port: int, requests: bytes) -> None:
    """Ask, and read nothing; the connection stays open until the task is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # else asyncio reads ahead
    writer.write(requests)
    try:
        await asyncio.Event().wait()
    finally:
        writer.transport.abort()


async def ask_small(port: int, seen: Seen) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        began = time.perf_counter()
        writer.write(SMALL)
        await reader.readuntil(b"}")
        seen.latencies.append(time.perf_counter() - began)
        await asyncio.sleep(0.02)


async def measure(pid: int, port: int, crowd: Crowd, seconds: float) -> tuple[Seen, Seen]:
    """Let a crowd be silent for so long; give what was seen before and meanwhile."""
    before, meanwhile = Seen(), Seen()
    asking = asyncio.ensure_future(ask_small(port, before))
    await asyncio.sleep(2.0)
    asking.cancel()
    tasks = [asyncio.ensure_future(watch(pid, meanwhile)), asyncio.ensure_future(ask_small(port, meanwhile))]
    many = request(WHOLE, "X-Whole: 1") * crowd.depth
    tasks += [asyncio.ensure_future(be_silent(port, many)) for _ in range(crowd.pipelines)]
    tasks += [asyncio.ensure_future(be_silent(port, request(STREAM))) for _ in range(crowd.streams)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(asking, *tasks, return_exceptions=True)
    return before, meanwhile


def milliseconds(seen: Seen) -> str:
    cuts = quantiles(seen.latencies, n=100)
    return f"p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms"


def run(crowd: Crowd, sending: str, seconds: float) -> bool:
    """Measure one crowd; say whether the bound was kept."""
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start("--max-sending-bytes", sending, "--queue-jobs", "2000", "--grace", "1")
        try:
            served.register("pours", "--batch-size", "1", "--workers", str(WORKERS))
            served.register("sized")
            idle, port = memory_of(served.pid), int(served.url.rpartition(":")[2])
            before, seen = uvloop.run(measure(served.pid, port, crowd, seconds))
        finally:
            served.stop()
    bound = idle + parse_size(sending) + (crowd.streams + crowd.pipelines) * PIECE
    bound += WORKERS * 2 * WHOLE * MIB if crowd.pipelines else 0
    kept = seen.most <= bound
    print(f"{crowd.name}, nothing read for {seconds:g} s")
    print(f"  memory: {idle / MIB:.0f} MiB before, {seen.most / MIB:.0f} at most")
    print(f"  bound:  {bound / MIB:.0f} MiB  {'kept' if kept else 'PASSED'}")
    print(f"  requests of another model: {milliseconds(before)} before, {milliseconds(seen)} meanwhile", flush=True)
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sending", default="256MiB")
    parser.add_argument("--seconds", type=float, default=10)
    chosen = parser.parse_args()
    kept = [run(crowd, chosen.sending, chosen.seconds) for crowd in CROWDS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
