"""The verdict as `tsctl describe` shows it."""

import pytest

from tsctl.extensions.verdict import COMMAND_LINE

SENTENCE = "4.7 requests/s come, one worker can do 3.3: `tsctl scale slow 2`"


@pytest.mark.parametrize(
    ("document", "rows"),
    [
        pytest.param({"verdict": SENTENCE}, [("verdict", SENTENCE)], id="a sentence"),
        pytest.param({"verdict": None}, [], id="nothing is known"),
        pytest.param({}, [], id="an older daemon"),
    ],
)
def test_the_verdict_is_a_row(document: dict[str, str | None], rows: list[tuple[str, str]]) -> None:
    assert [*COMMAND_LINE.described(document, 0.0)] == rows
