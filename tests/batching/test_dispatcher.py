"""Jobs go to idle workers in batches, come back once if a worker dies, and end exactly once."""

from collections.abc import Sequence
from typing import Any

import pytest

from daemon.batching.dispatcher import Dispatcher
from daemon.batching.policies.collector import Facts, Send, Wait
from daemon.core.clock import FakeClock
from daemon.core.errors import QueueFull, Stopping
from daemon.core.job import Budget, Job, Phase, Reply
from daemon.models.version import Model
from daemon.workers.stub import StubEngine
from tests.build import Client, make_model

LATE = Reply(500, b"late")


class Bench:
    """A model with stub workers, each batch taking a second."""

    def __init__(self, *, workers: int = 1, **settings: Any) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, batch_time=lambda size: 1.0)
        self.model: Model = make_model(self.engine, self.clock, **settings)
        self.client = Client()
        self.model.pool.scale(workers)
        self.clock.settle()

    @property
    def dispatcher(self) -> Dispatcher:
        return self.model.dispatcher

    def send(self, *names: str) -> list[Job]:
        jobs = [self.client.job(name, arrived=self.clock.now()) for name in names]
        for job in jobs:
            self.model.submit(job)
        return jobs

    @property
    def batches(self) -> Sequence[tuple[str, ...]]:
        """The batches, in the order sent."""
        sent = sorted((b for worker in self.engine.workers for b in worker.batches), key=lambda batch: batch.id)
        return [tuple(job.id for job in batch.jobs) for batch in sent]

    def kill(self, worker: int, **how: Any) -> None:
        self.engine.workers[worker].die(**how)


def test_jobs_that_arrive_in_one_turn_travel_together() -> None:
    bench = Bench(batch_size=4, policy="greedy")

    bench.send("a", "b", "c")
    bench.clock.settle()

    assert bench.batches == [("a", "b", "c")]
    assert bench.dispatcher.running == 3


def test_a_collector_that_waits_for_no_time_is_asked_again_once_the_input_is_read() -> None:
    asked: list[int] = []

    class Reader:
        name = "reader"

        def decide(self, facts: Facts, now: float) -> Send | Wait:
            asked.append(facts.waiting)
            return Send(facts.waiting, "full") if facts.waiting == 2 else Wait(now)

        def drained(self) -> None:
            pass

    def more_input() -> None:
        bench.send("b")

    bench = Bench(batch_size=4)
    bench.dispatcher.collector = Reader()
    bench.send("a")
    bench.clock.soon(more_input)
    before = bench.clock.now()
    bench.clock.settle()

    assert asked == [1, 2]
    assert bench.batches == [("a", "b")]
    assert bench.clock.now() == before


def test_each_job_gets_its_own_answer() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    for name in ("a", "b"):
        bench.model.submit(bench.client.job(name, body=name.encode() * 3))

    bench.clock.advance(1.0)

    assert {name: reply.body for name, reply in bench.client.replies} == {"a": b"aaa", "b": b"bbb"}
    assert bench.dispatcher.running == 0 and bench.model.idle


def test_a_lone_job_waits_for_company_and_no_longer_than_the_delay() -> None:
    bench = Bench(batch_size=4, max_delay=0.1)
    bench.send("a")
    bench.clock.advance(0.05)
    bench.send("b")
    bench.clock.advance(0.04)
    assert bench.batches == []

    bench.clock.advance(0.02)

    assert bench.batches == [("a", "b")]
    assert bench.dispatcher.reasons == {"delay": 1} and bench.dispatcher.sizes == {2: 1}


def test_a_full_batch_does_not_wait() -> None:
    bench = Bench(batch_size=2, max_delay=10.0)

    bench.send("a", "b", "c")
    bench.clock.settle()

    assert bench.batches == [("a", "b")]
    assert bench.dispatcher.reasons == {"full": 1}


def test_jobs_that_wait_for_a_busy_worker_leave_in_order() -> None:
    bench = Bench(batch_size=2, policy="greedy")
    bench.send("a", "b", "c", "d", "e")

    bench.clock.advance(10.0)

    assert bench.batches == [("a", "b"), ("c", "d"), ("e",)]


def test_the_longest_idle_worker_is_next() -> None:
    bench = Bench(workers=2, policy="greedy")
    for name in ("a", "b", "c"):
        bench.send(name)
        bench.clock.advance(5.0)

    assert [len(worker.batches) for worker in bench.engine.workers] == [2, 1]


def test_a_refused_job_is_not_queued() -> None:
    bench = Bench(workers=1, queue_jobs=1)
    bench.send("running")
    bench.clock.settle()
    bench.send("waiting")

    with pytest.raises(QueueFull):
        bench.send("refused")

    bench.clock.advance(5.0)
    assert bench.client.answered == ["running", "waiting"]


def test_a_job_whose_worker_died_runs_again_first_and_alone() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    bench.send("a", "b")
    bench.clock.settle()
    bench.send("c", "d")

    bench.kill(0)
    bench.clock.advance(10.0)

    assert bench.batches == [("a", "b"), ("a",), ("b",), ("c", "d")]
    assert bench.dispatcher.reasons == {"at_once": 2, "retry": 2}
    assert bench.client.statuses == dict.fromkeys("abcd", 200)


def test_a_job_whose_worker_died_goes_to_another_idle_worker_at_once() -> None:
    bench = Bench(workers=2, policy="greedy")
    bench.send("a")
    bench.clock.settle()

    bench.kill(0)
    bench.clock.settle()

    assert [batch.jobs[0].id for batch in bench.engine.workers[1].batches] == ["a"]


def test_a_job_whose_worker_died_twice_is_told_so() -> None:
    bench = Bench(policy="greedy")
    (job,) = bench.send("a")
    bench.clock.settle()
    bench.kill(0)
    bench.clock.advance(0.6)
    assert job.attempt == 2

    bench.kill(1, reason="killed by SIGSEGV")

    ((_, reply),) = bench.client.replies
    assert reply.status == 500 and reply.error == "InternalServerException"
    assert reply.body == b"The worker died again while it ran this request: killed by SIGSEGV. (Request a)"


def test_a_job_that_may_not_run_again_is_answered_at_once() -> None:
    bench = Bench(policy="greedy")
    bench.send("a")
    bench.clock.settle()

    bench.kill(0, retry=False)

    ((_, reply),) = bench.client.replies
    assert reply.body == b"The worker died while it ran this request: killed by SIGKILL. (Request a)"


@pytest.mark.parametrize(("stopping", "status"), [(True, 503), (False, 500)])
def test_a_job_that_is_cut_off_by_a_stop_is_told_503_and_by_scaling_down_500(stopping: bool, status: int) -> None:
    bench = Bench()
    bench.send("a")
    bench.clock.settle()
    if stopping:
        bench.model.stop()

    bench.engine.workers[0]._exit(None, "killed: it was stopped", retry=False, stopped=True)

    ((_, reply),) = bench.client.replies
    assert reply.status == status and b"killed: it was stopped. (Request a)" in reply.body


def test_a_job_whose_worker_was_killed_from_outside_is_told_507_as_when_memory_runs_out() -> None:
    bench = Bench(policy="greedy")
    bench.send("a")
    bench.clock.settle()

    bench.kill(0, retry=False, killed=True)

    ((_, reply),) = bench.client.replies
    assert reply.status == 507 and reply.error == "InternalServerException"


def test_the_jobs_of_a_batch_that_takes_too_long_run_again_alone_and_one_that_is_late_then_is_told_so() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    bench.send("slow", "b")
    bench.clock.settle()

    bench.engine.workers[0].hang(LATE)
    bench.clock.advance(0.6)
    bench.engine.workers[1].hang(LATE)
    bench.clock.advance(10.0)

    assert bench.batches == [("slow", "b"), ("slow",), ("b",)]
    assert bench.dispatcher.reasons == {"at_once": 1, "retry": 2}
    assert bench.client.statuses == {"slow": 500, "b": 200}
    assert dict(bench.client.replies)["slow"] is LATE


def test_the_jobs_of_a_batch_that_takes_too_long_are_told_so_if_they_may_not_run_again() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    bench.send("a", "b")
    bench.clock.settle()

    bench.engine.workers[0].hang(LATE, retry=False)
    bench.clock.settle()

    assert dict(bench.client.replies) == {"a": LATE, "b": LATE}


def test_a_job_of_a_batch_that_takes_too_long_keeps_its_own_deadline() -> None:
    bench = Bench(batch_size=4, policy="greedy")
    now = bench.clock.now()
    bench.model.submit(bench.client.job("limited", arrived=now, budget=Budget(1.0, now, "the test")))
    bench.send("patient")
    bench.clock.advance(0.9)

    bench.engine.workers[0].hang(LATE)
    bench.clock.advance(10.0)

    assert bench.client.statuses == {"limited": 504, "patient": 200}


def test_a_queued_job_whose_client_left_is_not_run() -> None:
    bench = Bench(batch_size=4, max_delay=0.1)
    a, _ = bench.send("a", "b")

    bench.model.abandon(a)
    bench.clock.advance(5.0)

    assert bench.batches == [("b",)]
    assert a.phase is Phase.ENDED and bench.client.answered == ["b"]


def test_the_delay_starts_anew_after_everybody_left() -> None:
    bench = Bench(batch_size=4, max_delay=0.1)
    (first,) = bench.send("first")
    bench.clock.advance(0.09)
    bench.model.abandon(first)

    bench.send("second")
    bench.clock.advance(0.05)
    assert bench.batches == []

    bench.clock.advance(0.06)
    assert bench.batches == [("second",)]


def test_a_running_job_whose_client_left_ends_with_its_batch_and_tells_nobody() -> None:
    bench = Bench(batch_size=2, policy="greedy")
    a, _ = bench.send("a", "b")
    bench.clock.settle()

    bench.model.abandon(a)
    assert bench.dispatcher.running == 2
    bench.clock.advance(1.0)

    assert a.phase is Phase.ENDED and bench.client.answered == ["b"]
    assert bench.dispatcher.running == 0


def test_a_job_whose_client_left_is_not_run_again() -> None:
    bench = Bench(batch_size=2, policy="greedy")
    a, _ = bench.send("a", "b")
    bench.clock.settle()
    bench.model.abandon(a)

    bench.kill(0)
    bench.clock.advance(5.0)

    assert bench.batches == [("a", "b"), ("b",)]
    assert a.phase is Phase.ENDED


def test_a_client_that_leaves_after_the_answer_changes_nothing() -> None:
    bench = Bench(policy="greedy")
    (job,) = bench.send("a")
    bench.clock.advance(1.0)

    bench.model.abandon(job)

    assert job.phase is Phase.ENDED and bench.client.answered == ["a"]


def test_a_stop_sends_what_waits_without_further_delay() -> None:
    bench = Bench(batch_size=4, max_delay=100.0)
    bench.send("a")
    bench.clock.settle()

    bench.model.stop()
    bench.clock.settle()

    assert bench.batches == [("a",)]
    assert bench.dispatcher.reasons == {"stopping": 1}


def test_what_nobody_will_come_for_is_refused() -> None:
    bench = Bench(batch_size=4, max_delay=100.0)
    a, b = bench.send("a", "b")

    bench.dispatcher.refuse_all(Stopping("going away"))

    assert bench.client.statuses == {"a": 503, "b": 503}
    assert {job.phase for job in (a, b)} == {Phase.ENDED} and len(bench.model.queue) == 0


def test_a_refused_reply_says_when_to_come_again() -> None:
    bench = Bench(max_delay=100.0, batch_size=4)
    bench.send("a")

    bench.dispatcher.refuse_all(QueueFull("full"))

    assert bench.client.replies[0][1].retry_after == 1


def test_a_dispatcher_says_its_state() -> None:
    bench = Bench(batch_size=4)
    bench.send("a")

    assert repr(bench.dispatcher) == "<Dispatcher fixed <Queue 1/100 jobs 0/1000000 bytes> running=0>"
