"""The last lines of a log, or those since a time, through its rotated files; what is not needed is not read."""

import os
from pathlib import Path

import pytest

from tsctl.logs import merging as room
from tsctl.logs.lines import stamp_of
from tsctl.logs.merging import backlog
from tsctl.logs.sources import LogSource

T = 1_700_000_000.0


def daemon_lines(*numbers: int) -> str:
    return "".join(f"{stamp_of(T + number)} INFO    {number}\n" for number in numbers)


@pytest.fixture
def source(tmp_path: Path) -> LogSource:
    """A daemon's log of the lines 0 to 8, a second apart, in three files."""
    for name, numbers in (("d.log.2", (0, 1, 2)), ("d.log.1", (3, 4, 5)), ("d.log", (6, 7, 8))):
        (tmp_path / name).write_text(daemon_lines(*numbers))
        os.utime(tmp_path / name, (T + numbers[-1], T + numbers[-1]))
    return LogSource(tmp_path / "d.log", "daemon")


def numbers_of(source: LogSource, count: int | None, since: float | None, end: int | None = None) -> list[int]:
    return [int(line.text.split()[-1]) for line in backlog(source, count, since, end)]


@pytest.mark.parametrize("count", [*range(12), None])
def test_the_last_lines(source: LogSource, count: int | None) -> None:
    assert numbers_of(source, count, None) == list(range(9))[9 - min(9 if count is None else count, 9) :]
    assert numbers_of(source, None, None, len(daemon_lines(6))) == [0, 1, 2, 3, 4, 5, 6], "to where the newest ends"


@pytest.mark.parametrize("since", [-1.0, 0.0, 0.5, 2.0, 2.5, 3.0, 7.9, 8.0, 8.5])
@pytest.mark.parametrize("count", [None, 2])
def test_lines_since_a_time(source: LogSource, since: float, count: int | None) -> None:
    assert numbers_of(source, count, T + since) == [each for each in range(9) if each >= since]


@pytest.mark.parametrize("block", [1, 7, 40, 1000])
@pytest.mark.parametrize("since", [-1, 0, 1, 250, 499, 500])
def test_the_time_is_searched_for_in_a_long_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, since: int
) -> None:
    monkeypatch.setattr(room, "_BLOCK", block)
    (tmp_path / "d.log").write_text(daemon_lines(*range(500)))

    found = numbers_of(LogSource(tmp_path / "d.log", "daemon"), None, T + since)

    assert found == list(range(max(0, since), 500))


def test_of_a_long_file_little_is_read_to_find_a_time(tmp_path: Path) -> None:
    (tmp_path / "d.log").write_text(daemon_lines(*range(40_000)))
    read = 0

    class Counted:
        """A file whose reads are counted."""

        def __init__(self) -> None:
            self.file = (tmp_path / "d.log").open("rb")
            self.seek, self.tell = self.file.seek, self.file.tell

        def readline(self) -> bytes:
            nonlocal read
            line = self.file.readline()
            read += len(line)
            return line

    counted = Counted()
    begin, earlier = room.begin_since(counted, "daemon", T + 39_000)  # type: ignore[arg-type]
    size = counted.file.seek(0, os.SEEK_END)
    counted.file.close()

    assert earlier and begin > size * 0.9
    assert read < 10_000


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\nb", "\n\na\n", "a\n" * 9])
@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("count", range(4))
def test_the_last_lines_begin_where_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, block: int, count: int
) -> None:
    monkeypatch.setattr(room, "_BLOCK", block)
    (tmp_path / "x").write_text(text)

    with (tmp_path / "x").open("rb") as file:
        begin, found = room.begin_of_last(file, count)

    lines = text.splitlines(keepends=True)
    assert text[begin:] == "".join(lines[max(0, len(lines) - count) :])
    assert found == min(count, len(lines))


def test_a_traceback_stays_with_its_first_line(tmp_path: Path) -> None:
    text = daemon_lines(1) + "Traceback (most recent call last):\n  File\n" + daemon_lines(2) + "Traceback of 2\n"
    (tmp_path / "d.log").write_text(text)
    source = LogSource(tmp_path / "d.log", "daemon")

    lines = list(backlog(source, None, None))

    assert [line.time - T for line in lines] == [1, 1, 1, 2, 2]
    assert [line.continues for line in lines] == [False, True, True, False, True]
    assert list(backlog(source, None, T + 2)) == lines[3:]


def test_lines_whose_first_one_is_in_an_earlier_file_have_the_time_of_the_next_line_that_has_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "m@1.log").write_text(f"cut\noff\n{stamp_of(T)} 7 stdout new\n")

    lines = list(backlog(LogSource(tmp_path / "m@1.log", "model", "m", "1"), None, None))

    assert [line.time for line in lines] == [T, T, T]
    assert [line.continues for line in lines] == [True, True, False]


def test_lines_without_any_time_have_that_of_their_file_and_bytes_that_are_no_text_are_replaced(
    source: LogSource, tmp_path: Path
) -> None:
    source.path.write_bytes(b"caf\xe9\n")
    os.utime(source.path, (T, T))

    assert [(line.text, line.time) for line in backlog(source, 1, None)] == [("caf\ufffd", T)]
    assert list(backlog(LogSource(tmp_path / "none.log", "daemon"), 5, None)) == []


def test_a_clock_that_was_set_back_changes_no_order(tmp_path: Path) -> None:
    (tmp_path / "d.log").write_text(daemon_lines(5, 3, 6))

    lines = list(backlog(LogSource(tmp_path / "d.log", "daemon"), None, None))

    assert [line.time - T for line in lines] == [5, 5, 6]
