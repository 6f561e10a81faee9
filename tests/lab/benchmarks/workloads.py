"""The workloads: what is served, how it is asked, and for how long; load for each number of connections, and a kill."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.measuring.processes import cpu_of, pss_of
from tests.lab.benchmarks.models import CLOSE, Served, constant, real, resnet
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.results import Figures

CLIENTS = 8
QUIET = 1.0  # seconds of load before the kill
AFTER = 1.0  # seconds of load after the first good answer
PATIENCE = 10.0  # seconds after which a request hangs, and a server counts as never serving again
PAUSE = 0.05  # seconds that a client waits after it was refused


@dataclass(frozen=True, slots=True)
class Workload:
    """One model, asked in one or more ways by the same server process.

    Attributes:
        name: in options and results.
        title: in the report.
        served: makes the model and the request; called once.
        peers: whom it is measured with.
        connections: of wrk, one measurement each; none for the kill.
        seconds: of each measurement.
        warm_up: seconds of load before the first one, which is thrown away.
        about: what the page says of it.
    """

    name: str
    title: str
    served: Callable[[], Served]
    peers: Sequence[str]
    connections: Sequence[int] = ()
    seconds: float = 0.0
    warm_up: float = 0.0
    about: str = ""


_TEXTS = f"""\
all-MiniLM-L6-v2 with its own weights; eight texts of 3 to 150 words in a mixed order. tsctl serves the
[example](examples/embeddings/README.md), mosec and litserve its function in a worker of theirs. infinity-emb, which
has neither workers nor a delay, gets each text in JSON, by its own route. An answer is right if each of its numbers is
within {CLOSE:g} of that of the function in one process. Before it is measured, each server is asked for 30 s: in
that time tsctl learns what padding costs.
"""
_IMAGES = """\
EfficientNet-Lite0 with its own weights; photographs in a mixed order, JPEG and PNG. tsctl serves the
[example](examples/photographs/README.md), mosec the same network in torch. `torch-loop` and `onnxruntime-loop` have
no server: one process, with as many threads as a worker, decodes, prepares and classifies one photograph after the
other. There are no connections to them, so they have the same figures in each table.
"""
_OTHERS = ("torchserve", "mosec")  # LitServe was far behind but for MiniLM, and is measured no more with the others
_SERVERS = ("tsctl", *_OTHERS)
_OF_NETWORKS = ("tsctl", "tsctl+compile", "tsctl+bf16", "tsctl+bf16+compile", *_OTHERS)
# TorchServe has no plain functions, and prepares images with ImageNet's numbers alone.
_OF_TEXTS = ("tsctl", "mosec", "litserve", "infinity-emb")
_OF_IMAGES = ("tsctl", "tsctl+onnxruntime", "mosec", "torch-loop", "onnxruntime-loop")
_ALL = (
    Workload("constant", "Constant answer, 100 bytes sent", lambda: constant(100), _SERVERS, (1, 8, 32), 5.0, 2.0),
    Workload("payload", "Constant answer, 100 kB sent", lambda: constant(100_000), _SERVERS, (1, 8, 32), 5.0, 2.0),
    Workload("resnet18", "ResNet-18, JPEGs", lambda: resnet("resnet18"), _OF_NETWORKS, (32,), 12.0, 5.0),
    Workload("resnet152", "ResNet-152, JPEGs", lambda: resnet("resnet152"), _OF_NETWORKS, (32,), 25.0, 8.0),
    Workload(
        "minilm", "MiniLM, texts of 3 to 150 words", lambda: real("minilm"), _OF_TEXTS, (8, 32), 12.0, 30.0, _TEXTS
    ),
    Workload(
        "lite0", "EfficientNet-Lite0, photographs", lambda: real("lite0"), _OF_IMAGES, (1, 32), 12.0, 8.0, _IMAGES
    ),
    Workload("kill", "The only worker killed (-9) under 8 clients", lambda: constant(100, "brief"), _SERVERS),
)
WORKLOADS = {workload.name: workload for workload in _ALL}


def load(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (connections, figures).

    The processor time is that of all the server's processes while wrk ran; memory is read right after.
    Then each request is sent once more, all at once: an answer that is not right makes the figures wrong.
    """
    bodies = [request.body for request in served.requests]
    if workload.warm_up:
        wrk.run(running.url, bodies, max(workload.connections), workload.warm_up)
    for connections in workload.connections:
        before = cpu_of(running.process.pid)
        found = wrk.run(running.url, bodies, connections, workload.seconds)
        used = cpu_of(running.process.pid) - before
        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(lambda body: running.ask(body.read_bytes()), bodies))
        checked = list(zip(served.requests, answers, strict=True))
        figures: Figures = {
            "rate": found.rate,
            "p50": found.p50,
            "p95": found.p95,
            "p99": found.p99,
            "errors": found.errors + sum(answer.status != 200 for answer in answers),
            "wrong": sum(answer.status == 200 and not request.right(answer.body) for request, answer in checked),
            "pss": pss_of(running.process.pid),
        }
        if found.requests:
            figures["cpu"] = used / found.requests
        yield connections, figures


@dataclass(slots=True)
class Record:
    """One request: when it was sent and over, and how it ended: `good`, `failed` or `hanging`."""

    sent: float
    over: float
    how: str


def ask_until(over: threading.Event, running: Running, served: Served, records: list[Record]) -> None:
    """Ask again and again; record what becomes of each request."""
    body = served.body.read_bytes()
    while not over.is_set():
        sent, how = time.monotonic(), "failed"
        with contextlib.suppress(OSError):
            answer = running.ask(body, PATIENCE)
            right = answer.status == 200 and served.right(answer.body)
            how = "hanging" if answer.status == -1 else "good" if right else "failed"
        records.append(Record(sent, time.monotonic(), how))
        if how != "good":
            time.sleep(PAUSE)


def kill(running: Running, served: Served) -> Figures:
    """Kill the worker under load, and see what becomes of the clients.

    Raises:
        LookupError: no process looks like a worker.
    """
    over, records = threading.Event(), list[Record]()
    with ThreadPoolExecutor(CLIENTS) as clients:
        asking = [clients.submit(ask_until, over, running, served, records) for _ in range(CLIENTS)]
        try:
            time.sleep(QUIET)
            worker = running.worker
            killed = time.monotonic()
            os.kill(worker, signal.SIGKILL)
            while time.monotonic() < killed + PATIENCE and again_after(records, killed) is None:
                time.sleep(0.02)
            time.sleep(AFTER)
        finally:
            over.set()
        for each in asking:
            each.result()
    return judge(records, killed)


def again_after(records: list[Record], killed: float) -> float | None:
    """Seconds from the kill to the first good answer to a request that was sent after it."""
    return min((r.over - killed for r in list(records) if r.sent > killed and r.how == "good"), default=None)


def judge(records: list[Record], killed: float) -> Figures:
    """Count what became of the requests.

    Returns:
        `lost`: in the server when the worker was killed, and failed; `refused`: sent later, and
        failed; `hanging`: never answered; `again`: see `again_after`, infinite for never.
    """
    affected = [record for record in records if record.over > killed]
    again = again_after(records, killed)
    return {
        "lost": sum(record.how == "failed" and record.sent <= killed for record in affected),
        "refused": sum(record.how == "failed" and record.sent > killed for record in affected),
        "hanging": sum(record.how == "hanging" for record in affected),
        "again": float("inf") if again is None else again,
    }
