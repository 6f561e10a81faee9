"""A job is answered when it has no time left: never sent any more, or cut off at its deadline."""

import math

import pytest

from tests.batching.limited import limited, told
from tsctl.daemon.batching.queue import Expiry, Queue
from tsctl.daemon.core.clock import FakeClock


@pytest.mark.parametrize(("seconds", "told_of"), [(0.0009, False), (0.001, True)])
def test_a_receipt_is_told_of_from_a_millisecond_on(seconds: float, told_of: bool) -> None:
    bench = limited(clock=FakeClock(0.0))
    bench.ask("first")

    bench.ask("late", seconds=0.5, receipt=seconds)
    bench.clock.advance(5.0)

    assert ("took 1 ms to arrive" in told(bench, "late")) == told_of


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


def test_an_expectation_that_is_far_too_long_does_not_keep_everybody_out() -> None:
    bench = limited()
    bench.model.traffic.times.learn_batch(1, 100.0)  # one batch was in a swamp
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

    assert expiry.next(0.0, busy=True) == math.inf


def test_nothing_is_watched_without_a_limit() -> None:
    bench = limited()
    assert bench.dispatcher.expiry.next(0.0, busy=False) == math.inf
    for index in range(5):
        bench.ask(str(index))

    assert not bench.dispatcher._alarm.armed and not bench.dispatcher.expiry.watching
    assert len(bench.dispatcher.expiry.sent) == 0


def test_what_ended_is_watched_no_more() -> None:
    bench = limited()
    for index in range(5):
        bench.ask(str(index), seconds=100.0)
    bench.clock.advance(10.0)

    expiry = bench.dispatcher.expiry
    assert (len(expiry.sent), len(bench.model.queue.deadlines)) == (0, 0)
    assert repr(expiry) == "<Expiry of 0 waiting and 0 sent jobs>"
