"""What is called over gRPC, and all of its answers, in text files that are compared whole."""

from pathlib import Path

import pytest

from tests.extensions.grpc.called import play
from tests.kit.told import Told, told_in

pytestmark = pytest.mark.slow  # a real server and client
CALLED = Path(__file__).parent


@told_in([*CALLED.glob("called/*.txt"), *CALLED.glob("called/managing/*.txt")])
async def test_the_daemon_answers_all_of_this(told: Told, tmp_path: Path) -> None:
    told.compare(await play(told.lines, tmp_path, manages=told.file.parent.name == "managing"))
