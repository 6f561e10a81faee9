"""What goes over connections, and when: each file of tests/http/conversations is compared whole."""

from pathlib import Path

from tests.http.conversations import play
from tests.kit.told import Told, told_in


@told_in((Path(__file__).parent / "conversations").glob("*.txt"))
def test_a_connection_goes_exactly_like_this(told: Told) -> None:
    told.compare(play(told.lines))
