"""A job is answered when it has no time left: never sent any more, or cut off at its deadline."""

import math

import pytest

from tests.batching.limited import learn, limited, told
from tsctl.daemon.batching.expiry import Expiry
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import JobPhase


def test_one_that_waits_is_told_at_its_deadline_and_never_sent() -> None:
    bench = limited()
    bench.ask("first")
    late = bench.ask("late", seconds=0.25)

    bench.clock.advance(5.0)

    assert told(bench, "late") == (
        "The request was not run: of the 250 ms that x-request-deadline-ms allows, it waited 250 ms in the queue."
        " Allow more time, or add workers."
    )
    assert bench.client.took["late"] == pytest.approx(0.25)
    assert late.phase is JobPhase.ENDED and bench.sent == ["first"]
    assert bench.dispatcher.expired == {"queue": 1}


def test_it_is_told_as_soon_as_its_answer_would_be_late() -> None:
    bench = limited()
    learn(bench)
    bench.ask("first")

    bench.ask("late", seconds=1.25)
    bench.clock.advance(5.0)

    assert bench.client.took["late"] == pytest.approx(0.25)
    assert told(bench, "late").startswith(
        "The request was not run: of the 1.25 s that x-request-deadline-ms allows, it waited 250 ms in the queue,"
        " and the model takes about 1 s."
    )


def test_its_answer_is_expected_after_a_batch_of_one_whatever_the_last_batch_was() -> None:
    bench = limited(batch_size=2)
    bench.engine.batch_time = float
    learn(bench, 3)
    for _ in range(3):
        bench.send("learning", "too")
        bench.clock.advance(2.0)
    bench.ask("first")

    bench.ask("late", seconds=1.25)
    bench.clock.advance(5.0)

    assert bench.client.took["late"] == pytest.approx(0.25)


def test_it_is_told_as_early_when_a_single_batch_has_run_for_long() -> None:
    bench = limited(batch_time=3.0)
    learn(bench)
    bench.ask("first")
    bench.clock.advance(1.25)

    bench.ask("late", seconds=3.75)
    bench.clock.advance(5.0)

    assert bench.client.took["late"] == pytest.approx(0.75)


def test_one_that_would_be_too_late_at_once_is_told_at_once() -> None:
    bench = limited()
    learn(bench)

    bench.ask("late", seconds=0.9)

    assert bench.client.took == bench.client.took | {"late": 0.0}
    assert "late" not in bench.sent


def test_what_its_receipt_took_counts() -> None:
    bench = limited()
    bench.ask("first")

    bench.ask("late", seconds=0.5, receipt=0.3)
    bench.clock.advance(5.0)

    assert bench.client.took["late"] == pytest.approx(0.2)
    assert "it took 300 ms to arrive and waited 200 ms in the queue." in told(bench, "late")


@pytest.mark.parametrize(("seconds", "told_of"), [(0.0009, False), (0.001, True)])
def test_a_receipt_is_told_of_from_a_millisecond_on(seconds: float, told_of: bool) -> None:
    bench = limited(clock=FakeClock(0.0))
    bench.ask("first")

    bench.ask("late", seconds=0.5, receipt=seconds)
    bench.clock.advance(5.0)

    assert ("took 1 ms to arrive" in told(bench, "late")) == told_of


def test_one_that_can_be_answered_in_time_is() -> None:
    bench = limited()
    learn(bench)

    bench.ask("a", seconds=1.5)
    bench.clock.advance(5.0)

    assert bench.client.statuses == {"a": 200}
    assert not bench.dispatcher.expired


def test_a_running_one_is_told_at_its_deadline_and_its_late_answer_is_dropped() -> None:
    bench = limited(batch_size=2, batch_time=1.0)
    bench.ask("first")
    late, other = bench.ask("late", seconds=1.75), bench.ask("other")

    bench.clock.advance(1.75)
    assert told(bench, "late") == (
        "The model did not answer in time: of the 1.75 s that x-request-deadline-ms allows, it waited 1 s in the queue"
        " and has run for 750 ms. Its answer will be dropped. Allow more time."
    )
    assert late.phase is JobPhase.ENDED and other.phase is JobPhase.SENT
    assert bench.dispatcher.running == 2, "the worker still has both"

    bench.clock.advance(0.25)
    assert [name for name, _ in bench.client.replies] == ["first", "late", "other"]
    assert bench.client.statuses["other"] == 200
    assert bench.model.idle and bench.dispatcher.expired == {"worker": 1}


def test_one_whose_worker_died_expires_while_it_waits_for_another() -> None:
    bench = limited()
    bench.engine.load_time = 10.0
    bench.ask("a", seconds=2.0)
    bench.clock.advance(0.5)

    bench.workers[-1].die()
    bench.clock.advance(60.0)

    assert bench.client.took["a"] == pytest.approx(2.0)
    assert "it was run by a worker that died and waited 1.5 s in the queue" in told(bench, "a")
    assert bench.sent == ["a"] and bench.model.idle


def test_a_piece_after_the_deadline_is_dropped() -> None:
    bench = limited(batch_size=2)
    pieces: list[str] = []
    for name, seconds in (("a", 0.5), ("b", None)):
        bench.submit(name, seconds=seconds, stream=lambda piece, name=name: pieces.append(name))
    bench.clock.advance(0.4)
    bench.workers[-1].stream(b"x")
    bench.clock.advance(0.2)

    bench.workers[-1].stream(b"y")

    assert pieces == ["a", "b", "b"]


@pytest.mark.parametrize("policy", ["auto", "fixed"])
def test_a_held_job_is_sent_in_time_for_its_deadline(policy: str) -> None:
    bench = limited(batch_size=4, max_delay=30.0, policy=policy)
    learn(bench, 6)
    bench.ask("other")
    bench.clock.settle()

    bench.ask("urgent", seconds=3.0)
    bench.clock.advance(10.0)

    assert (bench.client.statuses["other"], bench.client.statuses["urgent"]) == (200, 200)
    assert bench.client.took["urgent"] <= 3.0
    if policy == "fixed":
        assert bench.dispatcher.reasons["deadline"] == 1


@pytest.mark.parametrize("policy", ["auto", "fixed"])
def test_a_job_with_a_deadline_is_not_held_before_anything_is_known(policy: str) -> None:
    bench = limited(batch_size=4, max_delay=30.0, policy=policy)

    bench.ask("a", seconds=1.5)
    bench.clock.advance(10.0)

    assert bench.client.statuses == {"a": 200}
    assert bench.client.took["a"] == pytest.approx(1.0)


def test_an_expectation_that_is_far_too_long_does_not_keep_everybody_out() -> None:
    bench = limited()
    bench.model.traffic.times.add(1, 100.0)  # one batch was in a swamp
    bench.model.traffic.last_time, bench.model.traffic.last_return = 100.0, bench.clock.now()
    bench.engine.batch_time = lambda size: 0.01

    for index in range(50):
        bench.ask(str(index), seconds=5.0)
        bench.clock.advance(0.25)

    refused = [name for name, status in bench.client.statuses.items() if status == 504]
    assert refused == ["0", "1", "2", "3", "4"], "for a second; the next was run, and what it took is believed"


def test_the_delay_starts_anew_after_all_expired() -> None:
    bench = limited(policy="fixed", batch_size=4, max_delay=1.0, queue_timeout=0.5)
    bench.ask("late")
    bench.clock.advance(0.5)
    assert bench.client.statuses == {"late": 504}
    bench.dispatcher.expiry.queue_timeout = math.inf

    bench.ask("next")
    bench.clock.advance(0.97)
    assert bench.sent == []

    bench.clock.advance(0.05)
    assert bench.sent == ["next"]


def test_who_waits_for_the_model_to_be_idle_hears_of_it() -> None:
    bench = limited()
    bench.engine.load_time = 60.0
    bench.ask("a", seconds=2.0)
    bench.workers[-1].die()
    idle: list[bool] = []
    bench.model.listeners[lambda: idle.append(bench.model.idle)] = None

    bench.clock.advance(2.5)

    assert idle[-1:] == [True], "the new worker is still loading"


def test_a_queue_has_no_timeout_until_one_is_set() -> None:
    expiry = Expiry(Queue("m", 10, 1000), limited().model.traffic)

    assert not expiry.watching and expiry.next(0.0, busy=True) == math.inf


def test_nothing_is_watched_without_a_limit() -> None:
    bench = limited()
    assert not bench.dispatcher.expiry.watching
    for index in range(5):
        bench.ask(str(index))

    assert not bench.dispatcher._alarm.armed
    assert len(bench.dispatcher.expiry.sent) == 0


def test_what_ended_is_watched_no_more() -> None:
    bench = limited()
    for index in range(5):
        bench.ask(str(index), seconds=100.0)
    bench.clock.advance(10.0)

    expiry = bench.dispatcher.expiry
    assert (len(expiry.sent), len(bench.model.queue.deadlines)) == (0, 0)
    assert repr(expiry) == "<Expiry of 0 waiting and 0 sent jobs>"


def test_all_are_refused_whatever_their_deadline() -> None:
    bench = limited()
    bench.ask("running")
    bench.ask("waiting", seconds=0.5)

    bench.model.refuse_waiting()
    bench.clock.advance(10.0)

    assert bench.client.statuses == {"waiting": 503, "running": 200}
