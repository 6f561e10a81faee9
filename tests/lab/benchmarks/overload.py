"""Overload: the cost for accepted requests, and the time to reject others: `python -m tests.lab.benchmarks.overload`.

[--seconds 5]

A model that takes 5 ms a request, and a queue of 20. First as many clients as it can hold, then ten times as many;
who is refused comes again after about half a second. Printed are the times of the answers 200 and 503, in ms.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from statistics import quantiles

import uvloop

from tests.e2e.served import Served

QUEUE = 20
REQUEST = b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"


async def ask(port: int, until: float, times: dict[str, list[float]], chance: random.Random) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(chance.uniform(0.0, 0.5))
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        status = head[9:12].decode()
        times.setdefault(status, []).append((time.perf_counter() - began) * 1000)
        if status != "200":
            await asyncio.sleep(chance.uniform(0.25, 0.75))  # not all at the same moment: nobody told them to
    writer.close()


async def crowd(port: int, clients: int, seconds: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    until = time.perf_counter() + seconds
    chance = random.Random(clients)
    await asyncio.gather(*(ask(port, until, times, chance) for _ in range(clients)))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start("--queue-jobs", str(QUEUE))
        try:
            served.register("sized", "--batch-size", "1")
            port = int(served.url.rpartition(":")[2])
            print(f"{'clients':>8}{'status':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}")
            for clients in (QUEUE, 10 * QUEUE):
                for status, found in sorted(uvloop.run(crowd(port, clients, seconds)).items()):
                    cuts = quantiles(found, n=100)
                    print(f"{clients:>8}{status:>8}{len(found) / seconds:>10.0f}{cuts[49]:>9.2f}{cuts[98]:>9.2f}")
        finally:
            served.stop()


if __name__ == "__main__":
    main()
