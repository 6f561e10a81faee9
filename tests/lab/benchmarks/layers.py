"""Each layer of the daemon alone, on the fakes that ship: no network and no other process.

    python -m tests.lab.benchmarks.layers [--profile]

    http      parse a request, answer it, write the access line       budget 9 µs of CPU a request
    queue     job, queue, collector, dispatcher, metrics              budget 6 µs
    frames    encode and decode, at both ends                         budget 5 µs
    daemon    http and queue together, routed: what a request costs the daemon, less its system calls and frames

The budget is for 32 connections and batches of eight. Times are processor time, the least of some runs, so that
neighbours on the machine matter little. `--profile` shows where those of `daemon` go.
"""

import cProfile
import gc
import itertools
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.http.fake import FakeTransport
from tests.kit.build import make_model
from tsctl.daemon.api.auth import OPEN, guarded, inference_check
from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.core.arena import Arena, Storage
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Caller, Job, Param, Reply
from tsctl.daemon.http.access_log import AccessLog
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Access, Listener
from tsctl.daemon.http.messages import Request, Response, new_request_id
from tsctl.daemon.http.router import Router
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.workers.stub import StubEngine
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

CONNECTIONS = 32
BATCH = 8
REPEATS = 7
LEAST_SECONDS = 0.15  # of a run


def microseconds(call: Callable[[], object], requests: int = CONNECTIONS) -> float:
    """Return the processor time of one request, the least of some runs; the call does the work of `requests`."""
    call()
    number, spent = 1, 0.0
    while (spent := _run(call, number)) < LEAST_SECONDS / 4:  # how many calls make a run
        number *= 4
    number = max(1, round(number * LEAST_SECONDS / spent))
    return min(_run(call, number) for _ in range(REPEATS)) / number / requests * 1e6


def _run(call: Callable[[], object], number: int) -> float:
    gc.collect()  # each run begins alike; what it leaves behind itself is its own cost
    began = time.process_time()
    for _ in range(number):
        call()
    return time.process_time() - began


def table(title: str, rows: Sequence[tuple[str, float]], budget: float) -> None:
    """Print µs a request; the first row is the one with the budget."""
    print(f"\n{title}: budget {budget:g} µs a request")
    for index, (name, cost) in enumerate(rows):
        over = "" if index else "  within" if cost <= budget else f"  {cost / budget:.1f} × the budget"
        print(f"  {name:<58} {cost:8.2f} µs{over}")


def post(model: str, size: int = 100) -> bytes:
    """Return a prediction as wrk sends it."""
    head = f"POST /predictions/{model} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + bytes(size)


def _nobody(request: Request, status: int, seconds: float) -> None:
    """Ignore answers."""


class Connections:
    """Open connections to one listener."""

    def __init__(
        self, application: Callable[[Exchange], None], clock: FakeClock, access: Access = _nobody,
        storage: Storage | None = None,
    ) -> None:  # fmt: skip
        self._clock = clock
        listener = Listener(application, HttpLimits(64 * 2**20), clock, access, storage=storage)
        peer = ("127.0.0.1", 50000)
        self._transports = [
            FakeTransport(listener.connect(), clock.soon, peername=peer) for _ in range(CONNECTIONS)
        ]  # fmt: skip
        clock.settle()

    def send(self, request: bytes) -> None:
        """Send a request on each connection; what they answered before is forgotten."""
        for transport in self._transports:
            transport.written.clear()
            transport.receive(request)
        self._clock.settle()

    def check(self) -> None:
        assert all(transport.written.startswith(b"HTTP/1.1 200 ") for transport in self._transports)


def http(folder: Path) -> None:
    def cost(size: int, *, log: bool = False, storage: Arena | None = None, models: int = 1) -> float:
        """Read a request with a body of `size`, answer it. With one model its head is known after the first request."""
        clock = FakeClock()
        access = AccessLog(folder / "access.log", clock, foreground=False).note if log else _nobody
        answered = Response(200, b"100")
        connections = Connections(lambda exchange: exchange.respond(answered), clock, access, storage)
        requests = itertools.cycle([post(f"model-{number}", size) for number in range(models)])
        connections.send(next(requests))
        connections.check()
        return microseconds(lambda: connections.send(next(requests)))

    response, request = Response(200, b"100"), Request("POST", "/predictions/m", [], id="x")
    rows = [
        ("a request of 100 B, with the access log", cost(100, log=True)),
        ("a request of 100 B, without it", cost(100)),
        ("a request of 100 B, whose head is parsed", cost(100, models=2)),
        ("a request of 100 kB, without it", cost(100_000)),
        ("a request of 100 kB, into the arena", cost(100_000, storage=Arena(64 * 2**20))),
        ("of which: the head of the answer", microseconds(lambda: response.head(request.id, keep_alive=True), 1)),
        ("of which: a request id", microseconds(new_request_id, 1)),
    ]
    table("HTTP: parse and answer", rows, 9.0)


def queue() -> None:
    def cost(batch_size: int, policy: str = "fixed") -> float:
        """One job of 32 that come together from as many connections; the costs of the stub and the clock are in it."""
        clock = FakeClock()
        engine = StubEngine(clock)
        model = make_model(engine, clock, batch_size=batch_size, policy=policy, max_delay=0.01)
        model.scale(1, 1)
        clock.settle()
        replies: list[Reply] = []
        params = [Param("body", "", b"x" * 100)]
        callers = [Caller() for _ in range(CONNECTIONS)]

        def run() -> None:
            replies.clear()
            clock.advance(0.001)
            now = clock.now()
            for caller in callers:
                model.submit(Job("id", params, [], now, replies.append, caller=caller))
            clock.settle()
            engine.workers[0].batches.clear()

        run()
        assert len(replies) == CONNECTIONS
        return microseconds(run)

    clock = FakeClock()

    def fakes() -> None:
        for _ in range(CONNECTIONS // BATCH):
            for _ in range(2):  # two calls soon and two timers for each batch
                clock.soon(lambda: None)
                clock.later(0.0, lambda: None)
            clock.settle()

    rows = [(f"a job in a batch of 8, {policy}", cost(BATCH, policy)) for policy in ("fixed", "auto", "greedy")]
    rows += [("a job in a batch of 1", cost(1)), ("of the first: the fake clock", microseconds(fakes))]
    table("Queue, collector, dispatcher, metrics", rows, 6.0)


def frames() -> None:
    """Measure a batch out and its answers back, encoded and decoded."""
    headers = [("Host", "127.0.0.1:8080"), ("Content-Length", "100"), ("url_path", ""), ("explain", "False")]
    rows = []
    for size in (100, 10_000, 100_000):
        params = [("body", "", bytes(size))]
        question = wire.Predict(1, [wire.Row(f"id-{index}", list(headers), list(params)) for index in range(BATCH)])
        answer = wire.Done(1, [wire.Answer(200, bytes(3)) for _ in range(BATCH)], 0.001)
        there, back, reader = wire.encode(question), bytes(wire.encode(answer)), FrameReader()

        def in_daemon(
            question: wire.Predict = question, back: bytes = back, reader: FrameReader = reader
        ) -> None:  # fmt: skip
            wire.encode(question)
            for frame in reader.feed(back):
                wire.decode_for_daemon(frame)

        def in_worker(there: bytes | bytearray = there, answer: wire.Done = answer) -> None:
            wire.decode_for_worker(memoryview(there)[wire.LENGTH.size :])
            wire.encode(answer)

        daemon, worker = microseconds(in_daemon, BATCH), microseconds(in_worker, BATCH)
        what = f"a request of {size:,} B".replace(",", " ")
        rows += [(f"{what}: both ends", daemon + worker), (f"{what}: daemon", daemon), (f"{what}: worker", worker)]
    table("Frames, in a batch of 8", rows, 5.0)


def daemon(folder: Path, *, profile: bool) -> None:
    """Measure a request from bytes to bytes: the model `model-0` with one stub worker, behind the inference routes."""
    clock = FakeClock()
    engine, registry, metrics = StubEngine(clock), Registry(), Metrics()
    model = make_model(
        engine, clock, name="model-0", batch_size=BATCH, max_delay=0.01, queue_jobs=100_000, queue_bytes=2**40
    )
    model.scale(1, 1)
    registry.add(model)
    metrics.add(model.metrics)
    log = AccessLog(folder / "access.log", clock, foreground=False)

    def tell(request: Request, status: int, seconds: float) -> None:
        metrics.answered(status)
        log.note(request, status, seconds)

    routes = guarded(inference_routes(registry), inference_check("", ""), unguarded=OPEN)
    connections = Connections(Router(routes), clock, tell)
    request = post("model-0")

    def ask() -> None:
        connections.send(request)
        for worker in engine.workers:
            worker.batches.clear()  # it would keep all of them

    ask()
    connections.check()
    if profile:
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [ask() for _ in range(2000)])
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
        return
    table("The daemon's path", [("a request of 100 B", microseconds(ask))], 15.0)  # 9 for HTTP, 6 for the queue


def main(arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        if "--profile" in arguments:
            daemon(Path(name), profile=True)
            return
        http(Path(name))
        queue()
        frames()
        daemon(Path(name), profile=False)


if __name__ == "__main__":
    main(sys.argv[1:])
