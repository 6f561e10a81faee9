"""Autoscaling in `tsctl top`."""

from typing import Any

import pytest

from tests.extensions.live.tsctl.documents import NAME
from tests.extensions.live.tsctl.test_screens import busy, drawn, past_of
from tests.extensions.scaling.tsctl.test_shown import AUTOSCALING
from tsctl.extensions.live.columns import ScreenSize
from tsctl.extensions.live.detail import detail
from tsctl.extensions.live.table import screen
from tsctl.extensions.live.view import View


@pytest.mark.parametrize(
    ("changes", "style"),
    [
        pytest.param({}, "", id="enough workers"),
        pytest.param({"blocked": True, "reason": "x, but y"}, "yellow", id="a worker is wanted in vain"),
    ],
)
def test_a_versions_own_screen_has_it_below_the_workers(changes: dict[str, Any], style: str) -> None:
    lines = detail(past_of(busy(autoscaling=AUTOSCALING | changes)), ("m", "1.0"), [], [], ScreenSize(80, 26))

    at = next(index for index, line in enumerate(drawn(lines)) if line.startswith("autoscaling: "))
    assert "workers ready" in drawn(lines)[at - 1]
    assert drawn(lines)[at].startswith("autoscaling: 1 to 4 workers, target 50 ms, predicted wait 12 ms")
    assert drawn(lines)[at + 1] == "from 1 to 2 11 s ago (predicted wait 80 ms > 50 ms)"
    assert [line[0].style for line in lines[at : at + 2]] == [style, style]


def titles(columns: int, *pairs: tuple[dict[str, Any], dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the titles of the columns, and the texts of the first model."""
    lines = drawn(screen(past_of(*pairs), View(), ScreenSize(columns, 24)))
    at = next(index for index, line in enumerate(lines) if "MODEL" in line)
    return lines[at].split(), lines[at + 1].split()


def test_the_table_has_the_range_of_each_version_if_one_is_autoscaled() -> None:
    shown, texts = titles(120, busy("a", autoscaling=AUTOSCALING), busy("b"))

    assert shown[:4] == ["MODEL", "READY", "RANGE", "REQ/S"]
    assert texts[1:5] == ["a", "1/1", "1-4", "400"]
    assert "RANGE" not in titles(120, busy("b"))[0]


def test_on_a_narrow_terminal_the_range_goes_after_the_processors_and_before_the_median() -> None:
    found = [titles(columns, busy(NAME, autoscaling=AUTOSCALING))[0] for columns in range(40, 160)]

    assert {tuple(title in shown for title in ("CPU", "RANGE", "P50")) for shown in found} == {
        (True, True, True), (False, True, True), (False, False, True), (False, False, False),
    }  # fmt: skip
