"""The last minute of a version, from counts that are remembered every five seconds."""

import pytest

from tests.metrics.test_metrics import run
from tsctl.daemon.api.management.describe import recent_document
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.metrics.metrics import Metrics, RecentTimer
from tsctl.daemon.metrics.version import VersionMetrics


class Minute:
    """A version whose counts are remembered."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = Metrics()
        self.version = VersionMetrics("m", "1")
        self.metrics.add(self.version)
        self.timer = RecentTimer(self.metrics, self.clock)
        self.timer.begin()

    def ask(self, count: int = 1, status: int = 200) -> None:
        for _ in range(count):
            run(self.version, at=self.clock.now() - 3, status=status)

    @property
    def counted(self) -> tuple[int, int]:
        recent = self.version.recent(self.clock.now())
        return recent.requests, recent.errors


def test_requests_count_at_once_and_for_a_minute() -> None:
    minute = Minute()
    minute.clock.advance(107.0)
    recent = minute.version.recent(minute.clock.now())
    assert (recent.requests, recent.errors, recent.p50, recent.p99) == (0, 0, None, None)
    minute.ask(3)
    minute.ask(2, status=503)

    assert minute.counted == (5, 2)
    minute.clock.advance(59.0)
    assert minute.counted == (5, 2)
    minute.clock.advance(7.0)
    assert minute.counted == (0, 0)


def test_each_window_covers_a_minute_and_at_most_five_seconds_more() -> None:
    minute = Minute()
    for _ in range(200):
        minute.clock.advance(1.0)
        minute.ask()
        recent = minute.version.recent(minute.clock.now())
        assert 60 <= recent.seconds <= 65
        assert recent.requests <= 66

    assert minute.counted[0] >= 60


def test_quantiles_are_those_of_the_minute_alone() -> None:
    minute = Minute()
    for _ in range(100):
        run(minute.version, at=minute.clock.now(), took=20.0)
    minute.clock.advance(70.0)
    minute.ask(100)

    recent = minute.version.recent(minute.clock.now())

    assert recent.p50 == pytest.approx(3.0, rel=0.1)
    assert recent.p99 == pytest.approx(3.0, rel=0.1)
    assert [recent_document(recent)[name] for name in ("p50Ms", "p99Ms")] == [pytest.approx(3000, rel=0.1)] * 2


def test_a_version_registered_again_begins_with_an_empty_minute() -> None:
    minute = Minute()
    minute.ask(3)
    minute.metrics.remove(minute.version)
    again = VersionMetrics("m", "1")
    minute.metrics.add(again)

    assert again.codes == {200: 3}
    assert again.recent(minute.clock.now()).requests == 0
    run(again, at=minute.clock.now() - 3)
    new = VersionMetrics("m", "1")  # which keeps the minute of the one that it replaces
    minute.metrics.replace(again, new)
    run(again, at=minute.clock.now() - 3)
    assert new.recent(minute.clock.now()).requests == 2


def test_a_timer_that_is_closed_remembers_nothing_more() -> None:
    minute = Minute()
    minute.timer.close()

    minute.clock.advance(1000.0)

    minute.ask(3)
    minute.clock.advance(1000.0)
    assert minute.counted == (3, 0)
