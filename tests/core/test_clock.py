"""Time moves when told to, and each call is made at its own moment."""

import asyncio
import math

import pytest

from tsctl.daemon.core.clock import FakeClock, LoopClock, Ticker


def test_a_call_is_made_at_its_own_moment_unless_it_is_cancelled() -> None:
    clock = FakeClock(start=10.0)
    calls: list[tuple[str, float]] = []
    clock.later(2.0, lambda: calls.append(("second", clock.now())))
    for name in ("first", "of the same moment", "in their order"):
        clock.later(1.0, lambda name=name: calls.append((name, clock.now())))  # type: ignore[misc]
    clock.later(1.0, lambda: calls.append(("cancelled", clock.now()))).cancel()

    clock.advance(0.999)
    assert calls == []
    clock.advance(4.001)

    assert calls == [("first", 11.0), ("of the same moment", 11.0), ("in their order", 11.0), ("second", 12.0)]
    assert clock.now() == 15.0


def test_a_ticker_calls_every_so_many_seconds_until_it_is_closed() -> None:
    clock = FakeClock(start=10.0)
    calls: list[float] = []
    ticker = Ticker(clock, 2.0, lambda: calls.append(clock.now()))

    ticker.begin()
    clock.advance(5.0)
    ticker.close()
    clock.advance(5.0)

    assert calls == [12.0, 14.0]


def test_soon_is_before_any_timer_and_does_not_move_the_time() -> None:
    clock = FakeClock(start=10.0)
    calls: list[str] = []
    clock.later(0.0, lambda: calls.append("timer"))
    clock.soon(lambda: calls.append("soon"))

    clock.settle()

    assert calls == ["soon", "timer"]
    assert clock.now() == 10.0


class RecordingLoop(asyncio.SelectorEventLoop):
    """A loop that writes down for how long its timers are armed."""

    def __init__(self) -> None:
        super().__init__()
        self.delays: list[float] = []

    def call_later(self, delay: float, *rest: object, **more: object) -> asyncio.TimerHandle:
        self.delays.append(delay)
        return super().call_later(delay, lambda: None)


@pytest.mark.parametrize(
    ("delay", "armed"),
    [
        pytest.param(0.0, 0.001, id="zero is a millisecond and no busy loop"),
        pytest.param(-5.0, 0.001, id="so is the past"),
        pytest.param(0.0101, 0.011, id="a part of a millisecond is rounded up"),
        pytest.param(2.0, 2.0, id="whole milliseconds stay"),
    ],
)
def test_the_loop_clock_arms(delay: float, armed: float) -> None:
    loop = RecordingLoop()
    try:
        LoopClock(loop).later(delay, lambda: None)

        assert math.isclose(loop.delays[0], armed)
    finally:
        loop.close()


async def test_the_loop_clock_calls_soon_after_what_is_ready() -> None:
    loop = asyncio.get_running_loop()
    calls: list[str] = []
    loop.call_soon(lambda: calls.append("input"))

    LoopClock(loop).soon(lambda: calls.append("soon"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert calls == ["input", "soon"]
