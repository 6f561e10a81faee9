"""A log is followed from its end, by whole lines, through rotations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tsctl.logs.following import FollowedLog


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


def test_a_line_that_is_unfinished_is_read_whole_when_it_ends(tmp_path: Path) -> None:
    append(tmp_path / "m.log", "before\nunfin")
    log = FollowedLog(tmp_path / "m.log")

    assert log.position == len("before\n")
    append(tmp_path / "m.log", "ished\nne")

    assert (log.lines(), log.position) == (["unfinished"], len("before\nunfinished\n"))
    log.close()


def test_what_a_rotated_file_ends_with_is_a_line(log: FollowedLog, tmp_path: Path) -> None:
    append(tmp_path / "m.log", "torn")
    (tmp_path / "m.log").rename(tmp_path / "m.log.1")
    append(tmp_path / "m.log", "first of the new\n")

    assert log.lines() == ["torn", "first of the new"]


def test_a_file_that_is_gone_for_a_while_is_waited_for(log: FollowedLog, tmp_path: Path) -> None:
    (tmp_path / "m.log").rename(tmp_path / "m.log.1")
    assert log.lines() == []
    append(tmp_path / "m.log", "new\n")

    assert log.lines() == ["new"]
