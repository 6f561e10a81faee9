"""A model on a Ray cluster of this machine: CPU of the daemon and its bridge for a batch, latency, and more nodes.

python -m tests.lab.benchmarks.ray_batches [--seconds 8] [--nodes 1,2,4] [--only batch|nodes]

The handler sleeps. First with batches of one and no sleep, on this machine and on a node: what a batch costs. Then with
20 ms of sleep on 1, 2 and 4 nodes with a worker each, under twice as many clients as workers: requests a second, and
their part of as many times the rate of one, medians of three rounds.
"""

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.e2e.ray.cluster import RayCluster
from tests.e2e.ray.models import bridge_of, register
from tests.e2e.served import Served
from tests.lab.benchmarks.measuring import processes

SIZES = (100, 100_000)  # bytes of a body
SLEEP = 0.02  # seconds
ROUNDS = 3


class Found(NamedTuple):
    """Requests a second, the median latency in seconds, CPU seconds of daemon and bridge for a request."""

    rate: float
    latency: float
    daemon: float
    bridge: float


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of one process, without its children."""
    return next((each.cpu for each in processes.read_all() if each.pid == pid), 0.0)


def measure(served: Served, model: str, body: bytes, clients: int, seconds: float) -> Found:
    """Ask for so long, each client as soon as it has its answer."""
    times: list[float] = []
    until = 0.0

    def ask() -> None:
        connection = served.connect()
        while time.monotonic() < until:
            began = time.monotonic()
            connection.request("POST", f"/predictions/{model}", body, {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                assert response.status == 200, response.read()
                response.read()
            times.append(time.monotonic() - began)
        connection.close()

    bridge = bridge_of(served)
    for length in (1.0, seconds):  # a first second to warm up
        times.clear()
        before = cpu_of(served.pid), cpu_of(bridge)
        began = time.monotonic()
        until = began + length
        threads = [threading.Thread(target=ask) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
    after = cpu_of(served.pid), cpu_of(bridge)
    count = len(times)
    return Found(count / took, median(times), (after[0] - before[0]) / count, (after[1] - before[1]) / count)


def body_of(size: int, sleep: float) -> bytes:
    """Return a request of at least so many bytes."""
    return json.dumps({"seconds": sleep, "filler": "x" * max(0, size - 40)}).encode()


def compare(served: Served, seconds: float) -> None:
    """Measure batches of one on this machine and on a node, and print."""
    print("a batch of one          clients   requests/s   median      daemon      bridge")
    for size in SIZES:
        for clients in (1, 2):
            for name in ("here", "on-node"):
                found = measure(served, name, body_of(size, 0.0), clients, seconds)
                print(
                    f"{name:8} {size:8} bytes {clients:8} {found.rate:12.0f} {found.latency * 1e3:7.2f} ms"
                    f" {found.daemon * 1e6:8.0f} µs {found.bridge * 1e6:8.0f} µs", flush=True,
                )  # fmt: skip


def grow(served: Served, nodes: list[int], seconds: float) -> None:
    """Measure with more and more nodes, in rounds, and print the medians."""
    rates: dict[int, list[float]] = {count: [] for count in nodes}
    parts: dict[int, list[float]] = {count: [] for count in nodes}
    for _ in range(ROUNDS):
        for count in nodes:
            served.tsctl("scale", "on-node", "--workers", str(count))
            found = measure(served, "on-node", body_of(100, SLEEP), 2 * count, seconds)
            rates[count].append(found.rate)
            parts[count].append(found.rate / count / rates[nodes[0]][-1] * nodes[0])
    print("20 ms of sleep          workers   requests/s   of linear, of the round's first")
    for count in nodes:
        shown = ", ".join(f"{part:.3f}" for part in parts[count])
        print(f"{count} nodes {count:22} {median(rates[count]):12.1f} {median(parts[count]):11.3f}   ({shown})")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--nodes", default="1,2,4")
    parser.add_argument("--only", choices=("batch", "nodes"))
    given = parser.parse_args()
    nodes = [int(each) for each in given.nodes.split(",")]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        cluster, served = RayCluster(folder), Served(folder)
        try:
            for number in range(max(nodes)):
                cluster.add(f"node{number}", cpus=1)
            served.start("--ray-address", cluster.address)
            register(served, "ran", name="on-node")
            served.register("ran", name="here")
            if given.only != "nodes":
                compare(served, given.seconds)
            served.tsctl("unregister", "here")
            if given.only != "batch":
                grow(served, nodes, given.seconds)
        finally:
            served.stop()
            cluster.close()


if __name__ == "__main__":
    main()
