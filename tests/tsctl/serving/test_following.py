"""A log is followed from its end, by whole lines, through rotations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tsctl.serving.following import FollowedLog, without_block


@pytest.fixture
def log(tmp_path: Path) -> Iterator[FollowedLog]:
    """The followed log of a file with one line."""
    append(tmp_path / "m.log", "a line from before\n")
    followed = FollowedLog(tmp_path / "m.log")
    yield followed
    followed.close()


def append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def test_lines_from_before_are_not_read(log: FollowedLog, tmp_path: Path) -> None:
    append(tmp_path / "m.log", "new\nunfin")
    first = log.lines()
    append(tmp_path / "m.log", "ished\n")

    assert (first, log.lines(), log.lines()) == (["new"], ["unfinished"], [])


def test_a_file_that_is_made_later_is_read_from_its_start(tmp_path: Path) -> None:
    log = FollowedLog(tmp_path / "m.log")
    append(tmp_path / "m.log", "first\n")

    assert log.lines() == ["first"]
    log.close()


def test_a_rotated_file_is_read_to_its_end_first(log: FollowedLog, tmp_path: Path) -> None:
    append(tmp_path / "m.log", "last of the old\n")
    (tmp_path / "m.log").rename(tmp_path / "m.log.1")
    append(tmp_path / "m.log", "first of the new\n")

    assert log.lines() == ["last of the old", "first of the new"]


def test_a_file_that_was_cut_is_read_from_its_start(log: FollowedLog, tmp_path: Path) -> None:
    (tmp_path / "m.log").write_text("new\n")

    assert log.lines() == ["new"]


@pytest.mark.parametrize(
    ("block", "left"),
    [("b\nc", ["a", "d"]), ("b\nx", ["a", "b", "c", "d"]), ("", ["a", "b", "c", "d"]), ("a\nb\nc\nd", [])],
)
def test_a_traceback_that_was_shown_is_left_out(block: str, left: list[str]) -> None:
    assert without_block(["a", "b", "c", "d"], block) == left
