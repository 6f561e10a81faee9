"""What is asked of the daemon, and all of its answers, in text files that are compared whole."""

from pathlib import Path

from tests.api.conversations import play
from tests.kit.told import Told, told_in

TESTS = Path(__file__).parents[1]


@told_in([*TESTS.glob("api/conversations/*.txt"), *TESTS.glob("extensions/*/conversations/*.txt")])
async def test_the_daemon_answers_all_of_this(told: Told, tmp_path: Path) -> None:
    told.compare(await play(told.lines, tmp_path))
