"""The fastest set that can be served with is chosen, and none where none is faster, or nothing is sure."""

import json
import math
from typing import Any

from tests.kit.said import said_in
from tsctl.daemon.extensions.optimizing.choice import TrialChoice, TrialRow, choose


def row(name: str, gain: float | None, **facts: Any) -> TrialRow:
    speed = None if gain is None else 50.0 * gain
    values: dict[str, Any] = {"memory": 700, "load": 1.5, "per_second": speed, "gain": gain}
    return TrialRow(optimize=name, now=name == "default", **values | facts)


PLAIN, NOW = row("none", 0.8), row("default", 1.0)


def test_the_fastest_is_chosen_and_told_beside_the_defaults_and_the_plain_model() -> None:
    choice = choose([PLAIN, NOW, row("compile", 1.1), row("bf16,compile", 2.0)], None)

    text = "bf16,compile: 100 requests/s, 2.00 x the defaults, 2.50 x the plain model"
    assert choice == TrialChoice("bf16,compile", sure=True, text=text)


@said_in("no_use.txt")
def test_a_set_that_is_of_no_use_is_told_with_the_reason(given: str) -> str:
    choice = choose([PLAIN, NOW, row("compile", **{"gain": 1.5} | json.loads(given))], 1000)
    assert choice.optimize == "" and choice.sure
    return choice.text


def test_the_next_best_is_chosen_where_the_best_is_of_no_use() -> None:
    choice = choose([PLAIN, NOW, row("compile", 1.1), row("int8", 3.0, memory=2000)], 1000)

    assert choice.optimize == "compile"


def test_a_set_whose_speed_is_unsure_is_tried_again_unless_another_is_surely_faster() -> None:
    unsure = row("bf16", 1.5, sure=False)

    assert not choose([PLAIN, NOW, unsure], None).sure
    assert choose([PLAIN, NOW, unsure, row("compile", 1.1)], None).optimize == "compile"


def test_a_set_that_cannot_be_served_with_need_not_be_sure() -> None:
    assert choose([PLAIN, NOW, row("compile", 1.5, sure=False, load=99.0)], None).sure


def test_the_plain_model_is_chosen_where_the_defaults_are_a_loss() -> None:
    choice = choose([row("none", 1.1), NOW, row("compile", 1.05)], None)

    assert choice == TrialChoice("none", sure=True, text="none: 55 requests/s, 1.10 x the defaults")


def test_a_load_that_takes_long_is_no_objection_where_that_is_not_asked() -> None:
    rows = [PLAIN, NOW, row("compile", 1.5, load=60.0)]

    assert (choose(rows, None).optimize, choose(rows, None, most_later=math.inf).optimize) == ("", "compile")
