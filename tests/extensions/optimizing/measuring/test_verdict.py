"""The set that `tsctl optimize` recommends."""

import pytest

from tsctl.daemon.extensions.optimizing.measuring.rows import SetResult
from tsctl.daemon.extensions.optimizing.measuring.verdict import changed_by, recommended


def row(name: str, per_second: float | None, *, now: bool = False, missing: str = "") -> SetResult:
    refused = "" if per_second is not None else "not here"
    return SetResult(optimize=name, now=now, per_second=per_second, refused=refused, missing=missing)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([row("none", 10, now=True), row("bf16", 15), row("int8", 20)], "int8", id="the fastest"),
        pytest.param([row("none", 10, now=True), row("bf16", None)], None, id="none if the others were refused"),
        pytest.param(
            [row("none", 10, now=True), row("bf16", 15), row("int8", 20, missing="int8 was left out")], "bf16",
            id="a set counts only if all of it was applied",
        ),
        pytest.param([row("none", 10), row("bf16", 15, now=True)], None, id="none if the fastest is that of now"),
        pytest.param([row("none", 10, now=True), row("fold", 10.1)], None, id="one percent is within the error"),
        pytest.param([row("none", 10, now=True), row("fold", 10.2)], "fold", id="two percent are not"),
        pytest.param([row("none", 10), row("bf16", None, now=True)], "none", id="anything is faster than what fails"),
    ],
)  # fmt: skip
def test_recommended(rows: list[SetResult], expected: str | None) -> None:
    assert recommended(rows) == expected


def test_a_change_of_the_machine_is_relative_to_the_shorter_time() -> None:
    assert changed_by(1.0, 1.5) == changed_by(1.5, 1.0) == 0.5
