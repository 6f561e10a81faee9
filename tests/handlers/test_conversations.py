"""What handlers are given, and what becomes of what they return, in text files that are compared whole."""

from pathlib import Path

from tests.handlers.conversations import play
from tests.kit.told import Told, told_in


@told_in((Path(__file__).parent / "conversations").glob("*.txt"))
def test_a_conversation_goes_exactly_like_this(told: Told, model_dir: Path) -> None:
    told.compare(play(told.lines, model_dir))
