"""What configurations come to: each file of tests/config/resolved, and of extensions' `resolved`, is compared whole."""

from pathlib import Path

from tests.config.resolved import play
from tests.kit.told import Told, told_in

TESTS = Path(__file__).parents[1]


@told_in([*TESTS.glob("config/resolved/*.txt"), *TESTS.glob("extensions/*/resolved/*.txt")])
def test_a_configuration_comes_to_exactly_this(told: Told, tmp_path: Path) -> None:
    told.compare(play(told.lines, tmp_path))
