"""From submit to reply: `python -m tests.lab.benchmarks.layers.queue`. Queue, collector, dispatcher, pool, metrics."""

from tests.kit.build import make_model
from tests.lab.benchmarks.layers.timing import microseconds, table
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Caller, Job, Param, Reply
from tsctl.daemon.workers.stub import StubEngine

BUDGET = 6.0
JOBS = 32


def job_cost(batch_size: int, policy: str = "fixed", body: bytes = b"x" * 100) -> float:
    """One job of 32 that come together from as many connections; the costs of the stub and the clock are in it."""
    clock = FakeClock()
    engine = StubEngine(clock)
    model = make_model(engine, clock, batch_size=batch_size, policy=policy, max_delay=0.01)
    model.scale(1, 1)
    clock.settle()
    replies: list[Reply] = []
    params = [Param("body", "", body)]
    callers = [Caller() for _ in range(JOBS)]

    def run() -> None:
        replies.clear()
        clock.advance(0.001)
        now = clock.now()
        for caller in callers:
            model.submit(Job("id", params, [], now, replies.append, caller=caller))
        clock.settle()
        engine.workers[0].batches.clear()

    run()
    assert len(replies) == JOBS
    return microseconds(run, JOBS)


def fakes_cost(batch_size: int) -> float:
    """Return the fake clock's share: two calls soon and two timers for each batch."""
    clock = FakeClock()

    def run() -> None:
        for _ in range(JOBS // batch_size):
            for _ in range(2):
                clock.soon(lambda: None)
                clock.later(0.0, lambda: None)
            clock.settle()

    return microseconds(run, JOBS)


def main() -> None:
    table(
        "Queue, collector, dispatcher, metrics",
        [
            ("a job in a batch of 8, fixed", job_cost(8)),
            ("a job in a batch of 8, auto", job_cost(8, "auto")),
            ("a job in a batch of 8, greedy", job_cost(8, "greedy")),
            ("a job in a batch of 1", job_cost(1)),
            ("of the first: the fake clock", fakes_cost(8)),
        ],
        BUDGET,
    )


if __name__ == "__main__":
    main()
