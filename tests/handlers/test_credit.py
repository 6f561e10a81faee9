"""How much a batch may stream: windows for each row, two seconds in all, and who is cut when they are over."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.handlers import wire
from tsctl.handlers.credit import LATE_WINDOW, OVERHEAD, WINDOW, Pieces, Windows, cost_of
from tsctl.handlers.process.row_window import RowWindow


def piece(row: int, size: int = WINDOW) -> tuple[int, wire.Answer]:
    return row, wire.Answer(200, bytes(size))


def rows(pieces: Pieces) -> list[int]:
    return [row for row, _ in pieces]


def wait_in_vain(windows: Windows, waiting: Pieces) -> list[int]:
    """Use up the patience."""
    windows.begin_wait()
    return windows.end_wait(windows.patience, waiting)


@pytest.fixture
def windows() -> Windows:
    return Windows()


def test_a_row_has_a_window_and_a_piece_goes_while_anything_is_left_of_it(windows: Windows) -> None:
    now, later = windows.split([piece(0, WINDOW - OVERHEAD - 1), piece(0, 5 * WINDOW), piece(0, 0), piece(1)])

    assert (rows(now), rows(later)) == ([0, 0, 1], [0])


def test_pieces_of_a_row_keep_their_order(windows: Windows) -> None:
    windows.split([piece(0)])

    now, later = windows.split([piece(0, 1), piece(1, 2), piece(0, 3)])

    assert rows(now) == [1]
    assert [len(answer.body) for _, answer in later] == [1, 3]


def test_what_a_client_has_taken_may_be_sent_again(windows: Windows) -> None:
    _, later = windows.split([piece(0), piece(0)])
    assert not windows.may_go_on(later)

    windows.grant(0, cost_of(piece(0)[1]))

    assert windows.may_go_on(later)
    assert rows(windows.split(later)[0]) == [0]


def test_a_row_that_nobody_waits_for_any_more_is_dropped(windows: Windows) -> None:
    _, later = windows.split([piece(0), piece(0)])

    windows.grant(0, 0)

    assert windows.may_go_on(later)
    assert windows.split([*later, piece(1)]) == ([piece(1)], [])


def test_nothing_goes_to_a_row_whose_client_has_left_though_credit_comes_late() -> None:
    opened: list[object] = []
    connection: Any = SimpleNamespace(open=lambda *asked: opened.append(asked))
    window = RowWindow(connection, 7)
    assert window.passes(10) and opened == [(7, window)]

    window.grant(0, 0)
    window.grant(0, 5000)

    assert (window.room, window.passes(10)) == (0, False)


def test_a_wait_is_charged_and_cuts_nobody_while_patience_is_left(windows: Windows) -> None:
    _, later = windows.split([piece(0), piece(0)])

    windows.begin_wait()

    assert windows.end_wait(1.5, later) == []
    assert windows.patience == 0.5


def test_when_patience_is_used_up_the_rows_that_took_nothing_are_cut(windows: Windows) -> None:
    _, later = windows.split([piece(2), piece(1), piece(0), piece(2), piece(1)])

    assert wait_in_vain(windows, later) == [1, 2]
    assert windows.split([piece(0, 1), *later]) == ([piece(0, 1)], []), "its neighbours go on"


def test_a_row_that_took_something_goes_on_in_a_wider_window_without_waiting(windows: Windows) -> None:
    _, later = windows.split([piece(0, 4 * WINDOW), piece(1), piece(0, 1), piece(1, 1)])
    windows.begin_wait()
    windows.grant(0, WINDOW)

    assert windows.end_wait(2.0, later) == [1]
    assert rows(windows.split(later)[0]) == [0]
    now, later = windows.split([piece(0, LATE_WINDOW), piece(0)])
    assert (rows(now), rows(later)) == ([0], [0])
    windows.begin_wait()
    assert windows.end_wait(0.0, later) == [0]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 1000, WINDOW // 3, WINDOW, 2 * WINDOW])), max_size=30)
)
def test_what_is_under_way_never_passes_the_window_by_more_than_a_piece(
    pieces: Sequence[tuple[int, int]],
) -> None:
    windows = Windows()
    sent: Pieces = []

    for row, size in pieces:
        sent += windows.split([piece(row, size)])[0]

    for row in range(3):
        mine = [cost_of(answer) for number, answer in sent if number == row]
        assert sum(mine[:-1]) < WINDOW


@pytest.mark.parametrize("seconds", [0.0, 1.9])
def test_a_row_for_which_credit_came_in_time_is_not_cut(seconds: float, windows: Windows) -> None:
    _, later = windows.split([piece(0), piece(0)])
    windows.begin_wait()
    windows.grant(0, WINDOW)

    assert windows.end_wait(seconds, later) == []
