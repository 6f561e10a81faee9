"""The verdict as `tsctl describe` and `tsctl top` show it."""

import pytest

from tests.tsctl.top.test_screens import busy, drawn, past_of
from tsctl.extensions.verdict import COMMAND_LINE
from tsctl.top.columns import ScreenSize
from tsctl.top.detail import detail

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


@pytest.mark.parametrize(
    ("sentence", "style"),
    [
        pytest.param(SENTENCE, "yellow", id="something is to be done"),
        pytest.param("1 request/s comes, one worker can do 3.3", "", id="the workers keep up"),
    ],
)
def test_a_versions_own_screen_has_it(sentence: str, style: str) -> None:
    lines = detail(past_of(busy(verdict=sentence)), ("m", "1.0"), [], [], ScreenSize(100, 26))

    (line,) = [each for each in lines if sentence in "".join(part.text for part in each)]
    assert {part.style for part in line} == {style}


def test_without_one_the_screen_is_as_ever() -> None:
    document, other = busy(verdict=None), busy()

    screens = [detail(past_of(each), ("m", "1.0"), [], [], ScreenSize(100, 26)) for each in (document, other)]
    assert drawn(screens[0]) == drawn(screens[1])
