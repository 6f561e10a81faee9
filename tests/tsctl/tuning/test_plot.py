"""Plots in text."""

from tsctl.tuning.plot import Dot, scatter


def test_dots_are_drawn_where_their_values_are_on_logarithmic_axes() -> None:
    lines = scatter([Dot(1, 100, "a"), Dot(10, 10, "b"), Dot(100, 1, "c")], "x", "y", width=21, height=3)

    assert lines == [
        "y",
        " 100 │a",
        "     │          b",
        "1.00 │                    c",
        "     └─────────────────────",
        "      1.00      x       100",
    ]


def test_a_single_dot_is_in_the_middle() -> None:
    lines = scatter([Dot(50, 20, "1")], "capacity", "p99", width=11, height=3)

    assert lines[2] == "     │     1"


def test_of_two_dots_in_the_same_place_the_later_is_seen() -> None:
    lines = scatter([Dot(1, 1, "+"), Dot(1, 1, "1")], "x", "y", width=9, height=3)

    assert lines[2].endswith("│    1")
    assert "+" not in "".join(lines)


def test_a_name_that_does_not_fit_between_the_ends_is_left_out() -> None:
    lines = scatter([Dot(1, 1, "a"), Dot(1000, 2, "b")], "capacity, requests a second", "y", width=12, height=2)

    assert lines[-1].split() == ["1.00", "1000"]
