"""The verdict as `tsctl top` shows it."""

import pytest

from tests.extensions.live.tsctl.test_screens import busy, drawn, past_of
from tests.extensions.verdict.tsctl.test_shown import SENTENCE
from tsctl.extensions.live.columns import ScreenSize
from tsctl.extensions.live.detail import detail


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
