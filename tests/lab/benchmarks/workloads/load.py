"""Load: wrk on one server, for each number of connections."""

from collections.abc import Iterator

from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.workloads.workload import Workload


def run(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (connections, figures).

    The processor time is that of all the server's processes while wrk ran; memory is read right after.
    An answer that is not right makes them wrong.
    """
    bodies = served.bodies or [served.body]
    if workload.warm_up:
        wrk.run(running.url, bodies, running.headers, max(workload.connections), workload.warm_up)
    for connections in workload.connections:
        before = running.cpu
        found = wrk.run(running.url, bodies, running.headers, connections, workload.seconds)
        used = running.cpu - before
        answer = running.ask(served.body.read_bytes())
        figures: Figures = {
            "rate": found.rate,
            "p50": found.p50,
            "p95": found.p95,
            "p99": found.p99,
            "errors": found.errors + (answer.status != 200),
            "wrong": int(answer.status == 200 and not served.right(answer.body)),
            "pss": running.pss,
        }
        if found.requests:
            figures["cpu"] = used / found.requests
        yield connections, figures
