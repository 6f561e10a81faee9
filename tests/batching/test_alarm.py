"""An alarm rings at the earliest time that was set since it rang last."""

import math

from tests.kit.clock import FakeClock
from tsctl.daemon.batching.dispatcher import Alarm


class SetAlarm:
    """An alarm on a fake clock, and when it rang."""

    def __init__(self, *due: float) -> None:
        self.rang: list[float] = []
        self.clock = FakeClock()
        self.began = self.clock.now()
        self.alarm = Alarm(self.clock, lambda: self.rang.append(self.clock.now() - self.began))
        for each in due:
            self.set(each)

    def set(self, due: float) -> None:
        self.alarm.set(self.began + due, self.clock.now())


def test_an_alarm_rings_once_at_the_earliest_time() -> None:
    bench = SetAlarm(3.0, 2.0, 4.0)
    assert bench.alarm.armed

    bench.clock.advance(10.0)

    assert bench.rang == [2.0]
    assert not bench.alarm.armed


def test_a_time_that_has_passed_rings_at_once() -> None:
    bench = SetAlarm(-1.0)

    bench.clock.advance(0.0)

    assert bench.rang == [0.0]


def test_an_alarm_that_is_set_for_never_does_not_ring() -> None:
    bench = SetAlarm(math.inf)

    assert not bench.alarm.armed


def test_an_alarm_that_rang_is_set_anew() -> None:
    bench = SetAlarm(1.0)
    bench.clock.advance(1.0)

    bench.set(5.0)
    bench.clock.advance(10.0)

    assert bench.rang == [1.0, 5.0]


def test_a_cancelled_alarm_rings_no_more_until_it_is_set() -> None:
    bench = SetAlarm(1.0)

    bench.alarm.cancel()
    bench.clock.advance(2.0)
    assert bench.rang == []
    bench.set(5.0)
    bench.clock.advance(10.0)

    assert bench.rang == [5.0]
