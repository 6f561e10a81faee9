"""How many requests a batch may have after one did not fit into memory, and when more are tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.extensions.fitting.fitting import FIRST, LONGEST, Cap, lowered, raised

SIZE = 8


@pytest.mark.parametrize(("rows", "most"), [(2, 1), (3, 2), (5, 3), (8, 4), (32, 16)])
def test_half_of_what_did_not_fit_is_sent_from_then_on(rows: int, most: int) -> None:
    assert lowered(None, rows, 100.0) == Cap(most, rows, FIRST, 100.0 + FIRST)


def test_a_larger_batch_that_was_sent_before_the_cap_does_not_raise_it() -> None:
    cap = lowered(None, 8, 100.0)

    assert lowered(cap, 12, 101.0) is cap


def test_less_is_sent_where_half_does_not_fit_either() -> None:
    cap = lowered(lowered(None, 8, 100.0), 4, 101.0)

    assert cap == Cap(2, 4, FIRST, 101.0 + FIRST)


def test_twice_as_many_are_tried_until_the_batch_size_has_been_tried_as_long() -> None:
    cap: Cap | None = lowered(None, 4, 0.0)
    seen = []
    while cap is not None:
        seen.append((cap.most, cap.due))
        cap = raised(cap, 6, cap.due)

    assert seen == [(2, 60.0), (4, 120.0), (6, 180.0)]


def test_each_try_that_fails_doubles_the_time_to_the_next() -> None:
    cap, waits = lowered(None, 8, 0.0), []
    for _ in range(8):
        more = raised(cap, SIZE, cap.due)
        assert more is not None and more.most == SIZE
        cap = lowered(more, 8, cap.due + 1.0)
        waits.append(cap.wait)
        assert cap.due == cap.wait + more.due - more.wait + 1.0

    assert waits == [120.0, 240.0, 480.0, 960.0, 1920.0, LONGEST, LONGEST, LONGEST]


@given(size=st.integers(2, 64), fits=st.lists(st.integers(1, 64), min_size=1, max_size=50))
def test_whatever_fits_and_when_the_cap_is_within_the_batch_size_and_is_tried_again(size: int, fits: list[int]) -> None:
    cap: Cap | None = None
    now = 0.0
    for room in fits:
        most = size if cap is None else min(size, cap.most)
        if most > room and most > 1:
            cap = lowered(cap, most, now)
            assert cap.most < most, "less is sent at once"
        if cap is not None:
            assert 1 <= cap.most <= size and now < cap.due <= now + LONGEST
            now = cap.due
            cap = raised(cap, size, now)
