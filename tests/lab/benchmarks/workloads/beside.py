"""A fast model beside a slow one, in the same server: what those who ask the fast one notice of the other."""

import threading
from contextlib import ExitStack

from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.workloads.workload import Workload

CLIENTS = 8  # of the fast model
SLOW_CLIENTS = 16  # two full batches: one runs, one waits


def run(running: Running, workload: Workload, served: Served) -> Figures:
    """Measure the fast model alone, and while the slow one is asked all the time.

    Returns:
        `alone50`, `alone99`, `beside50`, `beside99`: latencies in seconds; `slow`: answers a second of the slow model;
        `errors`: requests to the fast model that failed.
    """
    wrk.run(running.url, served.body, running.headers, CLIENTS, workload.warm_up)
    alone = wrk.run(running.url, served.body, running.headers, CLIENTS, workload.seconds)
    with ExitStack() as asking:
        over, answered = threading.Event(), [0] * SLOW_CLIENTS
        for number in range(SLOW_CLIENTS):
            thread = threading.Thread(target=_ask, args=(running, served, over, answered, number))
            thread.start()
            asking.callback(thread.join)
        asking.callback(over.set)  # before the joins
        beside = wrk.run(running.url, served.body, running.headers, CLIENTS, workload.seconds)
        slow = sum(answered) / workload.seconds
    return {
        "alone50": alone.p50, "alone99": alone.p99, "beside50": beside.p50, "beside99": beside.p99, "slow": slow,
        "errors": alone.errors + beside.errors,
    }  # fmt: skip


def _ask(running: Running, served: Served, over: threading.Event, answered: list[int], number: int) -> None:
    body = served.body.read_bytes()
    while not over.is_set():
        answer = running.ask(body, target=running.slow)
        if answer.status == 200 and served.right(answer.body):
            answered[number] += 1
        else:
            over.wait(0.1)
