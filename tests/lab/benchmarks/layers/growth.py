"""Growth: `python -m tests.lab.benchmarks.layers.growth`. The cost of a request must not grow with what there is.

    connections   1 to 10 000 are open; requests come on 32 of them, others each time
    models        1 to 200 are registered; each request is for another
    queue         1 to 10 000 jobs wait; eight come, eight are served, one in the middle leaves

Prints a table and draws docs/benchmarks/growth.svg.
"""

import itertools

from daemon.core.clock import FakeClock
from daemon.core.job import Job, Param, Reply
from daemon.workers.stub import StubEngine
from tests.kit.build import make_model
from tests.lab.benchmarks.layers.stack import Stack, post
from tests.lab.benchmarks.layers.timing import microseconds
from tests.lab.benchmarks.reporting import svg
from tests.lab.benchmarks.reporting.page import PICTURES

ACTIVE = 32  # connections on which requests come together
CONNECTIONS = (1, 10, 100, 1000, 10_000)
MODELS = (1, 10, 50, 200)
JOBS = (1, 10, 100, 1000, 10_000)
Curve = list[tuple[float, float]]


def by_connections(count: int) -> float:
    # greedy: fewer than eight never fill a batch, and on a fake clock nobody may wait for one
    stack = Stack(connections=count, policy="greedy")
    active = min(ACTIVE, count)
    starts = itertools.cycle(range(0, count - active + 1, active))
    request = post("model-0")
    return microseconds(lambda: stack.ask(request, next(starts), active), active)


def by_models(count: int) -> float:
    stack = Stack(connections=ACTIVE, models=count, policy="greedy")
    requests = itertools.cycle([post(f"model-{number}") for number in range(count)])
    return microseconds(lambda: stack.ask(next(requests)), ACTIVE)


def by_jobs(count: int) -> float:
    clock = FakeClock()
    engine = StubEngine(clock, batch_time=lambda size: 1.0)
    model = make_model(engine, clock, batch_size=8, max_delay=0.01, queue_jobs=count + 100, queue_bytes=2**40)
    model.scale(1, 1)
    clock.settle()
    params = [Param("body", "", b"x" * 100)]

    def submit(number: int) -> list[Job]:
        jobs = [Job("id", params, [], clock.now(), _ignore) for _ in range(number)]
        for job in jobs:
            model.submit(job)
        return jobs

    submit(count + 8)
    clock.settle()

    def run() -> None:
        jobs = submit(9)
        model.abandon(jobs[4])
        clock.advance(1.0)
        engine.workers[0].batches.clear()

    cost = microseconds(run, 9)
    assert len(model.queue) == count, model.queue
    return cost


def _ignore(reply: Reply) -> None:
    """The answer is not looked at."""


def main() -> None:
    measured: dict[str, Curve] = {
        "open connections": [(count, by_connections(count)) for count in CONNECTIONS],
        "registered models": [(count, by_models(count)) for count in MODELS],
        "waiting jobs": [(count, by_jobs(count)) for count in JOBS],
    }
    for name, curve in measured.items():
        print(f"\n{name}: µs of a request, and by that of the smallest number that fills a batch")
        base = next(cost for count, cost in curve if count >= 10)
        for count, cost in curve:
            print(f"  {count:>7,.0f} {cost:8.2f}  {cost / base:5.2f} ×".replace(",", " "))
    PICTURES.mkdir(exist_ok=True)
    picture = svg.curves("Cost of a request, µs of processor time", measured, "how many there are", "µs")
    (PICTURES / "growth.svg").write_text(picture)
    print(f"\nwrote {PICTURES / 'growth.svg'}")


if __name__ == "__main__":
    main()
