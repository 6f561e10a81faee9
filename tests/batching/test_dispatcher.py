"""Jobs go to idle workers in batches, come back once if a worker dies, and end exactly once."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.batching.policies.collector import Facts, Send, Wait
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Fate, Reply

LATE = Reply(500, b"late")


def test_jobs_that_arrive_in_one_turn_travel_together() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")

    bench.send("a", "b", "c")

    assert bench.batches == ["a b c"]
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
        bench.submit("b")

    bench = StubVersion(batch_size=4)
    bench.dispatcher.collector = Reader()
    bench.submit("a")
    bench.clock.soon(more_input)
    before = bench.clock.now()
    bench.clock.settle()

    assert asked == [1, 2]
    assert bench.batches == ["a b"]
    assert bench.clock.now() == before


def test_the_collector_is_asked_once_in_a_turn_of_the_loop_however_many_events_wake_the_dispatcher() -> None:
    asked: list[int] = []

    class Patient:
        name = "patient"

        def decide(self, facts: Facts, now: float) -> Send | Wait:
            asked.append(facts.waiting)
            return Wait(now + 10.0)

        def drained(self) -> None:
            pass

    bench = StubVersion(batch_size=4)
    bench.dispatcher.collector = Patient()
    bench.submit("a")
    bench.dispatcher.wake()
    bench.clock.settle()

    assert asked == [1]


def test_a_lone_job_waits_for_company_and_no_longer_than_the_delay() -> None:
    bench = StubVersion(batch_size=4, max_delay=0.1)
    bench.send("a")
    bench.clock.advance(0.05)
    bench.send("b")
    bench.clock.advance(0.04)
    assert bench.batches == []

    bench.clock.advance(0.02)

    assert bench.batches == ["a b"]
    assert bench.dispatcher.reasons == {"delay": 1} and bench.dispatcher.sizes == {2: 1}


def test_a_full_batch_does_not_wait() -> None:
    bench = StubVersion(batch_size=2, max_delay=10.0)

    bench.send("a", "b", "c")

    assert bench.batches == ["a b"]
    assert bench.dispatcher.reasons == {"full": 1}


def test_the_longest_idle_worker_is_next() -> None:
    bench = StubVersion(workers=2, policy="greedy")
    for name in ("a", "b", "c"):
        bench.send(name)
        bench.clock.advance(5.0)

    assert [len(worker.batches) for worker in bench.workers] == [2, 1]


def test_a_job_whose_worker_died_runs_again_first_and_alone() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    bench.send("a", "b")
    bench.send("c", "d")

    bench.workers[0].die()
    bench.clock.advance(10.0)

    assert bench.batches == ["a b", "a", "b", "c d"]
    assert bench.dispatcher.reasons == {"at_once": 2, "retry": 2}
    assert bench.client.statuses == dict.fromkeys("abcd", 200)


def test_a_job_whose_worker_died_twice_is_told_so() -> None:
    bench = StubVersion(policy="greedy")
    (job,) = bench.send("a")
    bench.workers[0].die()
    bench.clock.advance(0.6)
    assert job.attempt == 2

    bench.workers[1].die(reason="killed by SIGSEGV")

    ((_, reply),) = bench.client.replies
    assert reply.status == 500 and reply.error == "InternalServerException"
    assert reply.body == b"The worker died again while it ran this request: killed by SIGSEGV. (Request a)"


def test_a_job_that_may_not_run_again_is_answered_at_once() -> None:
    bench = StubVersion(policy="greedy")
    bench.send("a")

    bench.workers[0].die(retry=False)

    ((_, reply),) = bench.client.replies
    assert reply.body == b"The worker died while it ran this request: killed by SIGKILL. (Request a)"


@pytest.mark.parametrize(("names", "awake"), [("a", False), ("ab", False), ("abc", True)])
def test_a_worker_that_ends_a_batch_wakes_the_dispatcher_only_if_a_job_waits(names: str, awake: bool) -> None:
    bench = StubVersion(policy="fixed", batch_size=1)
    bench.send(*names)

    while not bench.client.replies:
        bench.clock.step()

    assert bench.dispatcher._awake is awake


@pytest.mark.parametrize(("stopping", "status"), [(True, 503), (False, 500)])
def test_a_job_that_is_cut_off_by_a_stop_is_told_503_and_by_scaling_down_500(stopping: bool, status: int) -> None:
    bench = StubVersion()
    bench.send("a")
    if stopping:
        bench.model.stop()

    bench.workers[0]._exit(None, "killed: it was stopped", Fate.STOPPED, retry=False)

    ((_, reply),) = bench.client.replies
    assert reply.status == status and b"killed: it was stopped. (Request a)" in reply.body


def test_a_job_whose_worker_was_killed_from_outside_is_told_507_as_when_memory_runs_out() -> None:
    bench = StubVersion(policy="greedy")
    bench.send("a")

    bench.workers[0].die(retry=False, killed=True)

    ((_, reply),) = bench.client.replies
    assert reply.status == 507 and reply.error == "InternalServerException"


def test_the_jobs_of_a_batch_that_takes_too_long_run_again_alone_and_one_that_is_late_then_is_told_so() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    bench.send("slow", "b")

    bench.workers[0].hang(LATE)
    bench.clock.advance(0.6)
    bench.workers[1].hang(LATE)
    bench.clock.advance(10.0)

    assert bench.batches == ["slow b", "slow", "b"]
    assert bench.dispatcher.reasons == {"at_once": 1, "retry": 2}
    assert bench.client.statuses == {"slow": 500, "b": 200}
    assert dict(bench.client.replies)["slow"] is LATE


def test_the_jobs_of_a_batch_that_takes_too_long_are_told_so_if_they_may_not_run_again() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    bench.send("a", "b")

    bench.workers[0].hang(LATE, retry=False)
    bench.clock.settle()

    assert dict(bench.client.replies) == {"a": LATE, "b": LATE}


def test_a_job_of_a_batch_that_takes_too_long_keeps_its_own_deadline() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    bench.submit("limited", seconds=1.0)
    bench.send("patient")
    bench.clock.advance(0.9)

    bench.workers[0].hang(LATE)
    bench.clock.advance(10.0)

    assert bench.client.statuses == {"limited": 504, "patient": 200}


def test_the_delay_starts_anew_after_everybody_left() -> None:
    bench = StubVersion(batch_size=4, max_delay=0.1)
    (first,) = bench.send("first")
    bench.clock.advance(0.09)
    bench.model.abandon(first)

    bench.send("second")
    bench.clock.advance(0.05)
    assert bench.batches == []

    bench.clock.advance(0.06)
    assert bench.batches == ["second"]


def test_a_refused_reply_says_when_to_come_again() -> None:
    bench = StubVersion(max_delay=100.0, batch_size=4)
    bench.send("a")

    bench.dispatcher.refuse_all(QueueFull("full"))

    assert bench.client.replies[0][1].retry_after == 1


def test_a_dispatcher_says_its_state() -> None:
    bench = StubVersion(batch_size=4)
    bench.send("a")

    assert repr(bench.dispatcher) == "<Dispatcher fixed <Queue 1/100 jobs 0/1000000 bytes> running=0>"
