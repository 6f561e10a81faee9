"""What is bounded, on a real daemon: `python -m tests.lab.benchmarks.bounds [NAME …]`; all of them, by default.

    slow-clients      memory (resident) while 1000 clients upload 10 MB each, evenly over 20 s, beside the bound: what
                      the daemon has without clients, the budgets of bodies that are received and of the queue, the two
                      that a worker has, a piece of 32 KiB for each connection; and how long small requests take
    slow-readers      memory while nobody reads: a stream of 600 MiB, 32 pipelined answers of 34 MiB, 64 such clients;
                      beside the budget of answers that wait, a piece of each connection, and twice the answer that each
                      of the two workers is sending; and how long requests of another model take, before and meanwhile
    idle-connections  bytes of the daemon for each of 10 000 idle connections; the limit is 8 KiB. What the kernel keeps
                      for a socket is not the process's, and not counted
    overload          a model of 5 ms a request and a queue of 20: as many clients as it can hold, then ten times as
                      many, who come again half a second after a refusal; ms of the answers 200 and 503

Ends with 1 if a bound is passed.
"""

import asyncio
import contextlib
import random
import resource
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import uvloop

from tests.e2e.served import Served
from tests.lab.benchmarks.measuring.processes import pss_of_one
from tsctl.daemon.http.bounds.sending import PIECE

MB, MIB = 10**6, 2**20
PING = b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n"
SIZED = b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"


@contextlib.contextmanager
def daemon(*options: str, **models: Sequence[str]) -> Iterator[tuple[Served, int]]:
    """Run a daemon with models, each with its options; give it and its port."""
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start(*options)
        try:
            for model, given in models.items():
                served.register(model, *given)
            yield served, int(served.url.rpartition(":")[2])
        finally:
            served.stop()


def memory_of(pid: int) -> int:
    """Bytes that a process has resident; of the arena what is in its map."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


@dataclass
class Watch:
    """A process's memory at its most, in bytes, and how long small requests take beside, in ms."""

    pid: int
    port: int
    request: bytes
    most: int = 0
    latencies: list[float] = field(default_factory=list)

    async def memory(self) -> None:
        while True:
            self.most = max(self.most, memory_of(self.pid))
            await asyncio.sleep(0.05)

    async def requests(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while True:
            began = time.perf_counter()
            writer.write(self.request)
            await reader.readuntil(b"}")
            self.latencies.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.02)

    async def beside(self, work: Coroutine[Any, Any, Any], further: Sequence[Coroutine[Any, Any, Any]] = ()) -> Any:
        """Watch until `work` is done; `further` is cancelled then."""
        tasks = [asyncio.ensure_future(each) for each in (self.memory(), self.requests(), *further)]
        done = await work
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    def told(self) -> str:
        cuts = quantiles(self.latencies, n=100)
        return f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms"


def judged(idle: int, most: int, bound: int) -> bool:
    """Print and return whether a bound was kept."""
    print(f"  memory: {idle / MIB:.0f} MiB before, {most / MIB:.0f} at most")
    print(f"  bound:  {bound / MIB:.0f} MiB  {'kept' if most <= bound else 'PASSED'}")
    return most <= bound


# Slow clients.

CLIENTS, BODY, SECONDS, SENT_AT_ONCE = 1000, 10 * MB, 20.0, 100_000
RECEIVING, QUEUED = 512 * MIB, 256 * MIB


async def upload(port: int, source: str) -> str:
    """Send a body evenly; return the answer's status."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    except OSError as error:
        return f"no connection: {error.strerror}"
    writer.write(b"POST /predictions/sized HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BODY)
    answer = asyncio.ensure_future(reader.read(12))
    try:
        for _ in range(BODY // SENT_AT_ONCE):
            writer.write(bytes(SENT_AT_ONCE))
            await writer.drain()
            await asyncio.wait((answer,), timeout=SECONDS * SENT_AT_ONCE / BODY)
            if answer.done():
                break
        return (await asyncio.wait_for(answer, 120))[9:].decode() or "closed"
    except (OSError, TimeoutError) as error:
        answer.cancel()
        return type(error).__name__
    finally:
        writer.close()


async def upload_all(port: int) -> Counter[str]:
    return Counter(await asyncio.gather(*(upload(port, f"127.0.0.{2 + each % 16}") for each in range(CLIENTS))))


def slow_clients() -> bool:
    options = ("--max-receiving-bytes", str(RECEIVING), "--queue-bytes", str(QUEUED))
    with daemon(*options, sized=()) as (served, port):
        idle, watch = memory_of(served.pid), Watch(served.pid, port, PING)
        statuses = uvloop.run(watch.beside(upload_all(port)))
    print(f"{CLIENTS} clients, {BODY // MB} MB each: {dict(statuses)}")
    kept = judged(idle, watch.most, idle + RECEIVING + QUEUED + 2 * BODY + CLIENTS * 32 * 1024)
    print(f"  small requests beside: {watch.told()}")
    return kept


# Slow readers.

STREAM, WHOLE = 600, 34  # MiB
WORKERS, SENDING, SILENCE = 2, 256 * MIB, 10.0


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


async def be_silent(port: int, count: int, depth: int, *headers: str) -> None:
    """Ask for answers of so many MiB, and read nothing; the connection stays open until the task is cancelled."""
    lines = ["POST /predictions/pours HTTP/1.1", "Host: a", *headers, f"Content-Length: {len(str(count))}", "", ""]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # else asyncio reads ahead
    writer.write(("\r\n".join(lines) + str(count)).encode() * depth)
    try:
        await asyncio.Event().wait()
    finally:
        writer.transport.abort()


def silenced(crowd: Crowd) -> bool:
    options = ("--max-sending-bytes", str(SENDING), "--queue-jobs", "2000", "--grace", "1")
    pours = ("--batch-size", "1", "--workers", str(WORKERS))
    with daemon(*options, pours=pours, sized=()) as (served, port):
        idle, before, watch = memory_of(served.pid), *(Watch(served.pid, port, SIZED) for _ in range(2))
        uvloop.run(before.beside(asyncio.sleep(2.0)))
        silent = [be_silent(port, WHOLE, crowd.depth, "X-Whole: 1") for _ in range(crowd.pipelines)]
        silent += [be_silent(port, STREAM, 1) for _ in range(crowd.streams)]
        uvloop.run(watch.beside(asyncio.sleep(SILENCE), silent))
    print(f"{crowd.name}, nothing read for {SILENCE:g} s")
    answers = WORKERS * 2 * WHOLE * MIB if crowd.pipelines else 0
    kept = judged(idle, watch.most, idle + SENDING + (crowd.streams + crowd.pipelines) * PIECE + answers)
    print(f"  requests of another model: {before.told()} before, {watch.told()} meanwhile", flush=True)
    return kept


def slow_readers() -> bool:
    kept = [silenced(crowd) for crowd in CROWDS]
    return all(kept)


# Idle connections.

CONNECTIONS, LIMIT = 10_000, 8 * 1024
NOBODY = (
    b"POST /predictions/nobody HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: benchmark/1.0\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)


def ask_all(connections: Sequence[socket.socket]) -> None:
    for connection in connections:
        connection.sendall(NOBODY)
    for connection in connections:
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")


def idle_connections() -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with daemon("--keep-alive", "600") as (served, port), contextlib.ExitStack() as opened:
        for _ in range(50):
            served.ask("/ping")  # what is made once is there
        idle = pss_of_one(served.pid)
        connections = [
            opened.enter_context(
                socket.create_connection(("127.0.0.1", port), 30, source_address=(f"127.0.0.{2 + number % 20}", 0))
            )
            for number in range(CONNECTIONS)
        ]
        assert served.ask("/ping").status == 200  # all before it are accepted
        each = {"accepted": (pss_of_one(served.pid) - idle) / CONNECTIONS}
        for count in (1, 2, 3):
            ask_all(connections)
            each[f"after {count} requests"] = (pss_of_one(served.pid) - idle) / CONNECTIONS
    print(f"{CONNECTIONS} connections; the daemon has {idle / MIB:.1f} MiB without them")
    for name, size in each.items():
        print(f"{name:>18}: {size:7.0f} bytes each  {'within' if size < LIMIT else 'OVER'} {LIMIT}")
    return max(each.values()) < LIMIT


# Overload.

QUEUE, ASKING = 20, 5.0


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
    with daemon("--queue-jobs", str(QUEUE), sized=("--batch-size", "1")) as (_, port):
        print(f"{'clients':>8}{'status':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}")
        for clients in (QUEUE, 10 * QUEUE):
            for status, found in sorted(uvloop.run(ask_together(port, clients)).items()):
                cuts = quantiles(found, n=100)
                print(f"{clients:>8}{status:>8}{len(found) / ASKING:>10.0f}{cuts[49]:>9.2f}{cuts[98]:>9.2f}")
    return True


BOUNDS = {each.__name__.replace("_", "-"): each for each in (slow_clients, slow_readers, idle_connections, overload)}


def main(names: Sequence[str]) -> int:
    if unknown := set(names) - BOUNDS.keys():
        print(f"error: no bound is called {', '.join(sorted(unknown))}; they are {', '.join(BOUNDS)}", file=sys.stderr)
        return 2
    kept = [BOUNDS[name]() for name in names or BOUNDS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
