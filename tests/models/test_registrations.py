"""What is registered, replaced, kept and restored, in text files that are compared whole."""

from pathlib import Path

from tests.kit.told import Told, told_in
from tests.models.registrations import play


@told_in((Path(__file__).parent / "registrations").glob("*.txt"))
async def test_it_goes_exactly_like_this(told: Told, tmp_path: Path) -> None:
    told.compare(await play(told.lines, tmp_path))
