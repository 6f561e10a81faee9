"""What the daemon and a worker process say to each other, in text files that are compared whole."""

from pathlib import Path

from tests.kit.told import Told, told_in
from tests.workers.conversations import play


@told_in((Path(__file__).parent / "conversations").glob("*.txt"))
def test_a_conversation_goes_exactly_like_this(told: Told) -> None:
    told.compare(play(told.lines))
