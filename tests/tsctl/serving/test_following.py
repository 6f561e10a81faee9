"""The output of a served model is shown without what was shown already."""

import pytest

from tsctl.serving.following import without_block


@pytest.mark.parametrize(
    ("block", "left"),
    [("b\nc", ["a", "d"]), ("b\nx", ["a", "b", "c", "d"]), ("", ["a", "b", "c", "d"]), ("a\nb\nc\nd", [])],
)
def test_a_traceback_that_was_shown_is_left_out(block: str, left: list[str]) -> None:
    assert without_block(["a", "b", "c", "d"], block) == left
