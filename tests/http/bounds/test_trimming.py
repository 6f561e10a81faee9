"""Memory is given back when large messages have stopped coming."""

from daemon.core.clock import FakeClock
from daemon.http.bounds.trimming import MUCH, QUIET, Trimming


def trims(*times: tuple[float, int]) -> list[float]:
    """Return when memory is given back if so many bytes come after so many seconds each."""
    clock, found = FakeClock(), list[float]()
    trimming = Trimming(clock, lambda: found.append(clock.now()))
    began = clock.now()
    for seconds, size in times:
        clock.advance(seconds)
        trimming.note(size)
    clock.advance(10 * QUIET)
    return [at - began for at in found]


def test_small_messages_are_not_worth_it() -> None:
    assert trims((0.0, MUCH - 1)) == []


def test_it_waits_until_no_more_come() -> None:
    assert trims((0.0, MUCH), (QUIET - 1, MUCH), (1.0, 1)) == [2 * QUIET]


def test_each_flood_is_followed_by_one() -> None:
    assert trims((0.0, MUCH), (3 * QUIET, MUCH)) == [QUIET, 4 * QUIET]
