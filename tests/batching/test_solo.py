"""A job that travels alone: in no batch with others, and before those that wait."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.clock import FakeClock
from daemon.core.errors import QueueFull
from daemon.core.job import Job
from daemon.models.version import Model
from daemon.workers.stub import StubEngine
from tests.build import make_model


class Bench:
    """A model with one stub worker, each batch taking a second."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, batch_time=lambda size: 1.0)
        self.model: Model = make_model(self.engine, self.clock, **settings)
        self.model.pool.scale(1)
        self.clock.settle()

    def send(self, *names: str) -> None:
        """Submit jobs; those in capitals travel alone."""
        for name in names:
            self.model.submit(Job(name, [], [], self.clock.now(), lambda reply: None, solo=name.isupper()))

    @property
    def batches(self) -> list[tuple[str, ...]]:
        sent = sorted((b for worker in self.engine.workers for b in worker.batches), key=lambda batch: batch.id)
        return [tuple(job.id for job in batch.jobs) for batch in sent]


def test_it_goes_at_once_and_the_others_go_on_waiting_for_company() -> None:
    bench = Bench(batch_size=4, max_delay=10.0)
    bench.send("a", "X")

    bench.clock.settle()

    assert bench.batches == [("X",)]
    assert bench.model.dispatcher.reasons == {"solo": 1}


def test_it_overtakes_what_waits_and_parts_no_batch() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    bench.send("a")
    bench.clock.settle()
    bench.send("b", "c", "X", "d")

    bench.clock.advance(10.0)

    assert bench.batches == [("a",), ("X",), ("b", "c", "d")]


def test_one_whose_worker_died_is_a_retry() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    bench.send("X")
    bench.clock.settle()

    bench.engine.workers[0].die()
    bench.send("a")
    bench.clock.advance(10.0)

    assert bench.batches == [("X",), ("X",), ("a",)]
    assert bench.model.dispatcher.reasons == {"solo": 1, "retry": 1, "at_once": 1}


def test_the_limits_of_the_queue_hold_for_it() -> None:
    bench = Bench(queue_jobs=1)
    bench.send("a")
    bench.clock.settle()
    bench.send("b")

    with pytest.raises(QueueFull):
        bench.send("X")

    assert len(bench.model.queue) == 1


@given(
    st.lists(st.sampled_from(["a", "X", "die", "wait"]), max_size=30),
    st.integers(1, 4),
    st.sampled_from(["fixed", "greedy"]),
)
def test_whatever_happens_it_is_alone(events: list[str], batch_size: int, policy: str) -> None:
    bench = Bench(batch_size=batch_size, policy=policy)
    for event in events:
        if event == "die":
            bench.engine.workers[-1].die()
        elif event == "wait":
            bench.clock.advance(0.7)
        elif bench.model.pool.ready or bench.model.was_ready:
            bench.send(event)
    bench.clock.advance(1000.0)

    assert all(len(batch) == 1 for batch in bench.batches if "X" in batch)
    assert bench.model.idle
