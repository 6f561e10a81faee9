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


def test_a_file_that_is_made_later_is_read_from_its_start(tmp_path: Path) -> None:
    log = FollowedLog(tmp_path / "m.log")
    append(tmp_path / "m.log", "first\n")

    assert log.lines() == ["first"]
    log.close()


ROTATE = None


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        pytest.param(["new\nunfin", ["new"], "ished\n"], ["unfinished"], id="lines from before are not read"),
        pytest.param(["old\n", ROTATE, "new\n"], ["old", "new"], id="a rotated file is read to its end first"),
        pytest.param(["torn", ROTATE, "new\n"], ["torn", "new"], id="of which the end is a line"),
        pytest.param([ROTATE, [], "new\n"], ["new"], id="a file that is gone for a while is waited for"),
    ],
)
def test_following(log: FollowedLog, tmp_path: Path, steps: list[str | list[str] | None], lines: list[str]) -> None:
    for step in steps:
        if step is ROTATE:
            (tmp_path / "m.log").rename(tmp_path / "m.log.1")
        elif isinstance(step, list):
            assert log.lines() == step
        else:
            append(tmp_path / "m.log", step)

    assert log.lines() == lines and log.lines() == []


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
