"""What becomes of requests, workers and versions over time, in text files that are compared whole."""

from pathlib import Path

from tests.kit.told import Told, told_in
from tests.models.scenarios import play

TESTS = Path(__file__).parents[1]


@told_in([*TESTS.glob("*/scenarios/*.txt"), *TESTS.glob("extensions/*/scenarios/*.txt")])
def test_it_goes_exactly_like_this(told: Told) -> None:
    told.compare(play(told.lines))
