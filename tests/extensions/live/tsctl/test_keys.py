"""Keys, and what they change."""

import pytest

from tests.extensions.live.tsctl.documents import answered, live, model
from tsctl.extensions.live.figures import ModelFigures, figures
from tsctl.extensions.live.view import ORDERS, View, is_cut, keys_of, ordered, pressed

A, B, C = ("a", "1.0"), ("b", "1.0"), ("c", "1.0")


@pytest.fixture
def models() -> list[ModelFigures]:
    return figures(None, live(2000.0, model("a"), model("b"), model("c")))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("\x1b[A", ["up"]), ("\x1bOB", ["down"]), ("\r", ["open"]), ("\x1b", ["back"]), ("q", ["quit"]),
        ("\x1b[A\x1b[Bq", ["up", "down", "quit"]), ("\x1b[6~", ["page-down"]), ("\x1b[1;5A", []), ("é\t", []),
    ],
)  # fmt: skip
def test_a_terminal_s_bytes_are_keys(text: str, keys: list[str]) -> None:
    assert keys_of(text) == keys


@pytest.mark.parametrize(("text", "cut"), [("\x1b", True), ("\x1b[", True), ("\x1b[1;", True), ("\x1bO", True),
                                           ("\x1b[A", False), ("q", False), ("", False)])  # fmt: skip
def test_the_beginning_of_a_sequence_is_waited_upon(text: str, cut: bool) -> None:
    assert is_cut(text) == cut


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["down"], B), (["down", "down", "down", "down"], C), (["up"], A), (["last"], C), (["last", "first"], A),
        (["page-down"], C), (["down", "up"], A),
    ],
)  # fmt: skip
def test_arrows_move_the_selection(models: list[ModelFigures], keys: list[str], selected: tuple[str, str]) -> None:
    view = View()

    for key in keys:
        view = pressed(view, key, models)

    assert view == View(selected)


def test_enter_shows_a_model_and_escape_goes_back(models: list[ModelFigures]) -> None:
    opened = pressed(View(B), "open", models)

    assert opened == View(B, opened=True)
    assert pressed(View(), "open", []) == View()
    assert pressed(opened, "down", models) == View(C, opened=True)
    assert pressed(opened, "back", models) == pressed(opened, "open", models) == View(B)


def test_the_selection_stays_with_its_model_in_another_order(models: list[ModelFigures]) -> None:
    view = View(B)

    for order in (*ORDERS[1:], ORDERS[0]):
        view = pressed(view, "sort", models)
        assert view == View(B, order=order)


@pytest.mark.parametrize(
    ("order", "names"),
    [("name", "ab"), ("requests", "ba"), ("errors", "ba"), ("p99", "ba"), ("queue", "ba")],
)
def test_an_order_has_the_largest_number_first(order: str, names: str) -> None:
    before = live(2000.0, model("a"), model("b"))
    after = live(2001.0, model("a"), answered(40, 4, queued=3) | {"name": "b"})

    assert [each.label for each in ordered(figures(before, after), order)] == list(names)


@pytest.mark.parametrize("order", ORDERS)
def test_in_any_order_those_in_trouble_are_first(order: str) -> None:
    before = live(2000.0, model("a"), model("b"))
    after = live(2001.0, answered(40, 4, queued=3) | {"name": "a"}, model("b", troubles=["failed"], state="failed"))

    assert [each.label for each in ordered(figures(before, after), order)] == ["b", "a"]
