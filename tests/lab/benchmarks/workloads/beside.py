"""A fast model alone, and beside a slow one of the same server that other clients ask all the time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.workloads.workload import Workload

CLIENTS = 8  # of the slow model


def run(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (connections, figures): those of the fast model alone, and with `_beside` those beside the slow one.

    Raises:
        LookupError: the slow model did not answer while the fast one was measured.
    """
    for connections in workload.connections:
        wrk.run(running.url, served.body, running.headers, connections, workload.warm_up)
        alone = wrk.run(running.url, served.body, running.headers, connections, workload.seconds)
        with ThreadPoolExecutor() as threads:
            slow = threads.submit(
                wrk.run, running.url_beside, served.body, running.headers, CLIENTS, workload.seconds + 2
            )
            wrk.run(running.url, served.body, running.headers, connections, 1)  # until both are under way
            both = wrk.run(running.url, served.body, running.headers, connections, workload.seconds)
        if slow.result().errors or not slow.result().requests:
            raise LookupError(f"the slow model did not answer as it should: {slow.result()}")
        yield connections, {
            "rate": alone.rate, "p50": alone.p50, "p99": alone.p99,
            "rate_beside": both.rate, "p50_beside": both.p50, "p99_beside": both.p99,
            "errors": alone.errors + both.errors,
        }  # fmt: skip
