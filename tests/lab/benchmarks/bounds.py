"""What many clients cost, on a real daemon: `python -m tests.lab.benchmarks.bounds [NAME …]`; both, by default.

idle-connections  bytes of the daemon for each of 10 000 idle connections; the limit is 8 KiB. What the kernel keeps
                  for a socket is not the process's, and not counted. Ends with 1 if it is passed
overload          a model of 5 ms a request and a queue of 20: as many clients as it can hold, then ten times as
                  many, who come again half a second after a refusal; ms of the answers 200 and 503
"""

import asyncio
import contextlib
import random
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles

import uvloop

from tests.e2e.served import Served
from tsctl.daemon.core.machine.processes import taken

CONNECTIONS, LIMIT = 10_000, 8 * 1024
NOBODY = (
    b"POST /predictions/nobody HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: benchmark/1.0\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)
SIZED = b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
QUEUE, ASKING = 20, 5.0


@contextlib.contextmanager
def daemon(*options: str) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder)) as served:
        served.start(*options)
        yield served


def ask_all(connections: Sequence[socket.socket]) -> None:
    for connection in connections:
        connection.sendall(NOBODY)
    for connection in connections:
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")


def idle_connections() -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with daemon("--keep-alive", "600") as served, contextlib.ExitStack() as opened:
        for _ in range(50):
            served.ask("/ping")  # what is made once is there
        port, idle = served.port, taken(served.pid)
        connections = [
            opened.enter_context(
                socket.create_connection(("127.0.0.1", port), 30, source_address=(f"127.0.0.{2 + number % 20}", 0))
            )
            for number in range(CONNECTIONS)
        ]
        assert served.ask("/ping").status == 200  # all before it are accepted
        each = {"accepted": (taken(served.pid) - idle) / CONNECTIONS}
        for count in (1, 2, 3):
            ask_all(connections)
            each[f"after {count} requests"] = (taken(served.pid) - idle) / CONNECTIONS
    print(f"{CONNECTIONS} connections; the daemon has {idle / 2**20:.1f} MiB without them")
    for name, size in each.items():
        print(f"{name:>18}: {size:7.0f} bytes each  {'within' if size < LIMIT else 'OVER'} {LIMIT}")
    return max(each.values()) < LIMIT


async def ask(port: int, until: float, times: dict[str, list[float]], chance: random.Random) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(chance.uniform(0.0, 0.5))
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(SIZED)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        status = head[9:12].decode()
        times.setdefault(status, []).append((time.perf_counter() - began) * 1000)
        if status != "200":
            await asyncio.sleep(chance.uniform(0.25, 0.75))  # not all at the same moment: nobody told them to
    writer.close()


async def ask_together(port: int, clients: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    until, chance = time.perf_counter() + ASKING, random.Random(clients)
    await asyncio.gather(*(ask(port, until, times, chance) for _ in range(clients)))
    return times


def overload() -> bool:
    with daemon("--queue-jobs", str(QUEUE)) as served:
        served.register("sized", "--batch-size", "1")
        print(f"{'clients':>8}{'status':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}")
        for clients in (QUEUE, 10 * QUEUE):
            for status, found in sorted(uvloop.run(ask_together(served.port, clients)).items()):
                cuts = quantiles(found, n=100)
                print(f"{clients:>8}{status:>8}{len(found) / ASKING:>10.0f}{cuts[49]:>9.2f}{cuts[98]:>9.2f}")
    return True


BOUNDS = {each.__name__.replace("_", "-"): each for each in (idle_connections, overload)}


def main(names: Sequence[str]) -> int:
    if unknown := set(names) - BOUNDS.keys():
        print(f"error: no bound is called {', '.join(sorted(unknown))}; they are {', '.join(BOUNDS)}", file=sys.stderr)
        return 2
    kept = [BOUNDS[name]() for name in names or BOUNDS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
