"""Jobs go to idle workers in batches, come back once if a worker dies, and end exactly once."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.batching.policies.collector import Facts, Send, Wait
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Fate


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


def test_a_refused_reply_says_when_to_come_again() -> None:
    bench = StubVersion(max_delay=100.0, batch_size=4)
    bench.send("a")

    bench.dispatcher.refuse_all(QueueFull("full"))

    assert bench.client.replies[0][1].retry_after == 1


def test_a_dispatcher_says_its_state() -> None:
    bench = StubVersion(batch_size=4)
    bench.send("a")

    assert repr(bench.dispatcher) == "<Dispatcher fixed <Queue 1/100 jobs 0/1000000 bytes> running=0>"
