"""A tally counts as a `Counter` does."""

from collections import Counter

from tsctl.daemon.core.quick_counter import QuickCounter


def test_what_was_never_counted_is_zero_and_an_update_adds() -> None:
    tally: Counter[int] = QuickCounter()
    tally[200] += 1
    tally.update({200: 2, 404: 1})

    assert tally == {200: 3, 404: 1}
    assert (tally[500], tally.total(), len(tally)) == (0, 4, 2)
