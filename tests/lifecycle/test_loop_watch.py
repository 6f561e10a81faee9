"""A loop that does not turn is noticed when it turns again, and told with its length."""

import pytest

from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.events.events import Events
from tsctl.daemon.server.observation import LOOP_LATE, LOOP_LOOK_EVERY, LoopWatch, Observation


def watched() -> tuple[FakeClock, list[float], LoopWatch]:
    clock = FakeClock()
    stalls: list[float] = []
    watch = LoopWatch(clock, stalls.append)
    watch.begin()
    return clock, stalls, watch


def block(clock: FakeClock, seconds: float) -> None:
    """Let something on the loop take so long."""
    clock._now += seconds  # a fake clock does not move within a call


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(LOOP_LATE + LOOP_LOOK_EVERY + 2.0, [LOOP_LATE + 2.0]), (LOOP_LATE + LOOP_LOOK_EVERY - 0.1, [])],
)
def test_a_stall_is_told_once_with_its_length(seconds: float, told: list[float]) -> None:
    clock, stalls, _ = watched()

    block(clock, seconds)
    clock.advance(100.0)

    assert stalls == pytest.approx(told)


def test_a_stall_is_an_event() -> None:
    clock = FakeClock()
    observation = Observation(Events(), clock, clock.soon)
    observation.watch()

    block(clock, LOOP_LATE + LOOP_LOOK_EVERY + 2.0)
    clock.settle()
    observation.close()

    [event] = observation.events.after()
    assert (event.kind, event.text) == ("loop-stalled", f"the event loop did not turn for {LOOP_LATE + 2.0:.1f} s")


def test_a_closed_watch_has_no_timer() -> None:
    clock, stalls, watch = watched()

    watch.close()
    block(clock, 10.0)
    clock.advance(100.0)

    assert stalls == [] and not clock.step()
