"""Memory is given back when large messages have stopped coming."""

import pytest

from tests.kit.clock import FakeClock
from tsctl.daemon.http.bounds.trimming import MUCH, QUIET, Trimming, keep_memory, return_memory
from tsctl.daemon.tables import SETTINGS


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


class Libc:
    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}

    def mallopt(self, parameter: int, value: int) -> int:
        self.chosen[parameter] = value
        return 1


def test_the_memory_of_the_largest_messages_is_kept_while_they_come() -> None:
    libc = Libc()

    keep_memory({}, libc)

    assert len(libc.chosen) == 3
    largest = next(each.default for each in SETTINGS if each.name == "max_request_size")
    assert min(libc.chosen[-1], libc.chosen[-3]) > largest


def test_the_memory_of_a_large_body_is_given_back_at_once_where_no_messages_come() -> None:
    libc = Libc()

    return_memory({}, libc)

    assert libc.chosen == {-3: 2**20}  # M_MMAP_THRESHOLD


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_a_malloc_that_the_operator_has_configured_stays_so(name: str) -> None:
    libc = Libc()

    keep_memory({name: "1"}, libc)
    return_memory({name: "1"}, libc)
    keep_memory({}, object())  # another libc, which has no such function

    assert libc.chosen == {}
