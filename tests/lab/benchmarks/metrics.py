"""The cost of metrics: `python -m tests.lab.benchmarks.metrics`.

Prints the microseconds that one request costs the daemon's loop in batches of one and of eight, what a
batch's measurements cost a worker and the daemon, and what one look at /metrics costs.
"""

import itertools
import time
import timeit

from daemon.core.job import Batch, Job
from daemon.metrics import families
from daemon.metrics.exposition import texts
from daemon.metrics.machine.host import HostMonitor
from daemon.metrics.merged import emitted
from daemon.metrics.metrics import Metrics
from daemon.metrics.version import VersionMetrics
from handlers import wire
from handlers.sdk.pending_metrics import PendingMetrics

ROUNDS = 20_000
LABELS = (("ModelName", "resnet"), ("Level", "Model"))


def microseconds(call: str, names: dict[str, object], number: int = ROUNDS) -> float:
    """CPU of one call, the least of seven runs."""
    return min(timeit.repeat(call, timer=time.process_time, globals=names, number=number, repeat=7)) / number * 1e6


def request_cost(size: int) -> float:
    """One request of a batch of `size`: counted, sent, returned, answered, and its status."""
    metrics, version = Metrics(), VersionMetrics("resnet", "1.0")
    metrics.add(version)
    jobs = [Job(f"j{i}", [], [], 100.0, lambda reply: None, unnamed=True) for i in range(size)]
    for job in jobs:
        job.send()
    batch = Batch(1, jobs, "full", 100.004)

    def observe() -> None:
        for job in jobs:
            version.requested(job)
        version.sent(batch)
        version.returned(batch, 0.012, 100.017)
        for job in jobs:
            version.answered(job, 200, 100.017)
            metrics.answered(200)

    return microseconds("observe()", {"observe": observe}) / size


def tally_cost() -> tuple[float, float, float]:
    """Return the cost of a handler's time and one counter per batch: in the worker, on the wire, in the daemon."""
    tally, version = PendingMetrics(), VersionMetrics("resnet", "1.0")

    def measure() -> list[wire.Measurement]:
        tally.add("gauge", "HandlerTime", "ms", LABELS, 12.5)
        tally.add("counter", "Rows", "count", LABELS, 8)
        return tally.take()

    measured = measure()
    bare, full = wire.Done(1, [], 0.01), wire.Done(1, [], 0.01, measured)

    def travel(done: wire.Done) -> None:
        wire.decode_for_daemon(memoryview(wire.encode(done))[wire.LENGTH.size :])

    names: dict[str, object] = {"measure": measure, "travel": travel, "bare": bare, "full": full}
    wired = microseconds("travel(full)", names) - microseconds("travel(bare)", names)
    taken = microseconds("take(measured)", {"take": version.emitted.take, "measured": measured})
    return microseconds("measure()", names), wired, taken


def look_cost(versions: int) -> tuple[float, float, int]:
    """One look at /metrics with so many versions, each with a handler's series.

    Returns:
        Microseconds for all of it, and for the longest of its families, after each of which the loop
        may turn; the bytes of its text.
    """
    metrics, host = Metrics(), HostMonitor()
    for number in range(versions):
        version = VersionMetrics(f"model-{number}", "1.0")
        version.emitted.take([wire.Measurement("counter", "Rows", "count", LABELS[1:], 8.0)])
        metrics.add(version)

    def look() -> list[float]:
        parts = (
            families.answered(metrics), families.sums(metrics), families.last_batches(metrics),
            families.machine(host.read()), families.ours(metrics), emitted(metrics),
        )  # fmt: skip
        seconds, began = [], time.process_time()
        for text in texts(itertools.chain(*parts)):
            lengths.append(len(text))
            seconds.append(time.process_time() - began)
            began = time.process_time()
        return seconds

    lengths: list[int] = []
    seconds = min((look() for _ in range(20)), key=sum)
    return sum(seconds) * 1e6, max(seconds) * 1e6, sum(lengths) // 20


def main() -> None:
    for size in (1, 8):
        print(f"one request, in a batch of {size}: {request_cost(size):.2f} µs")
    worker, wired, daemon = tally_cost()
    print(f"two measurements of a batch: worker {worker:.2f} µs, wire {wired:.2f} µs, daemon {daemon:.2f} µs")
    for versions in (1, 10, 100):
        cost, longest, length = look_cost(versions)
        what = f"{cost / 1000:.2f} ms, {longest / 1000:.2f} ms at a time, {length} bytes"
        print(f"a look at /metrics with {versions} versions: {what}")


if __name__ == "__main__":
    main()
