"""A worker's output arrives line by line, for any split by the pipe."""

import time
from typing import Any

import pytest

from tests.kit.clock import FakeClock
from tsctl.daemon.workers.processes.output import (
    KEPT_LINES,
    LONGEST_LINE,
    MOST_BYTES,
    MOST_LINES,
    PERIOD,
    READ_EVERY,
    Output,
    Pace,
)

LONGEST = "x" * LONGEST_LINE


class Pipe:
    """The pipe that is a worker's stdout; its stderr has ended."""

    def __init__(self, pace: Pace | None = None, clock: FakeClock | None = None, pid: int | None = 7) -> None:
        self.clock = clock or FakeClock()
        self.writes: list[str] = []
        self.told: list[tuple[str, int, str]] = []
        self.closed: list[str] = []
        self.reading = True
        on_close = lambda: self.closed.append(self.lines[-1])  # noqa: E731
        self.output = Output(self._log, on_close, self.clock, pace or Pace())
        if pid is not None:
            self.output.born(pid)
        self.output.stderr.connection_lost(None)
        self.reader = self.output.stdout
        transport: Any = self
        self.reader.connection_made(transport)

    def _log(self, text: str, pid: int, stream: str) -> None:
        self.writes.append(text)
        self.told.append((text, pid, stream))

    @property
    def lines(self) -> list[str]:
        return "\n".join(self.writes).split("\n") if self.writes else []

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def bring(self, *pieces: bytes) -> None:
        """Let the loop read these, each as soon as it reads."""
        for piece in pieces:
            while not self.reading:
                assert self.clock.step()
            self.reader.data_received(piece)


def read(*pieces: bytes) -> tuple[list[str], Output]:
    pipe = Pipe()
    pipe.bring(*pieces)
    return pipe.lines, pipe.output


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        pytest.param([b"one\ntwo\n"], ["one", "two"], id="two lines in one piece"),
        pytest.param([b"o", b"ne", b"\n"], ["one"], id="a line in three pieces"),
        pytest.param([b"one\ntw", b"o\n"], ["one", "two"], id="a piece that ends within a line"),
        pytest.param([b"not yet"], [], id="a line that has not ended"),
        pytest.param([b"\n\n"], ["", ""], id="empty lines"),
        pytest.param([b"windows\r\n"], ["windows"], id="a carriage return is no text"),
        pytest.param([b"\xc3", b"\xa9\n"], ["é"], id="a letter in two pieces"),
        pytest.param([b"caf\xe9\n"], ["caf\\xe9"], id="a byte that is no UTF-8 stays readable"),
        pytest.param([LONGEST.encode() + b"\nnext\n"], [LONGEST, "next"], id="the longest line is not cut"),
        pytest.param([b"x" * (2 * LONGEST_LINE + 5) + b"\n"], [LONGEST, LONGEST, "xxxxx"], id="a longer one is"),
        pytest.param(
            [*[b"x" * 1000] * 32, b"x" * (2 * LONGEST_LINE + 5 - 32000), b"\n"],
            [LONGEST, LONGEST, "xxxxx"],
            id="so too",
        ),
        pytest.param(
            [LONGEST[1:].encode() + "é…\n".encode()], [LONGEST[1:], "é…"], id="no line is cut within a letter"
        ),
    ],
)
def test_lines(pieces: list[bytes], lines: list[str]) -> None:
    assert read(*pieces)[0] == lines


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


def test_lines_come_with_the_process_and_the_stream(pipe: Pipe) -> None:
    pipe.bring(b"one\n")
    pipe.output.stderr.data_received(b"two\nthree\n")

    assert pipe.told == [("one", 7, "stdout"), ("two\nthree", 7, "stderr")]
    assert pipe.output.last == ["one", "two", "three"]


def test_lines_wait_until_their_process_is_known() -> None:
    pipe = Pipe(pid=None)

    pipe.bring(b"one\n", b"two\n")
    assert pipe.told == []
    pipe.output.born(8)

    assert pipe.told == [("one", 8, "stdout"), ("two", 8, "stdout")]


def test_lines_of_a_process_that_never_became_known_are_not_lost() -> None:
    pipe = Pipe(pid=None)

    pipe.bring(b"one\n")
    pipe.reader.connection_lost(None)

    assert pipe.told == [("one", 0, "stdout")]
    assert pipe.closed == ["one"]


def test_the_end_of_one_stream_is_not_the_end() -> None:
    closed: list[str] = []
    output = Output(lambda text, pid, stream: None, lambda: closed.append("both"), FakeClock(), Pace())

    output.stderr.connection_lost(None)
    assert not output.closed
    output.stdout.connection_lost(None)

    assert closed == ["both"]


def test_both_streams_share_the_bounds_of_their_worker(pipe: Pipe) -> None:
    pipe.bring(b"1\n" * (MOST_LINES - 1))
    pipe.output.stderr.data_received(b"2\n3\n")
    pipe.reader.connection_lost(None)

    assert next(line for line in pipe.lines if line != "1") == "2"
    assert dropped_of(pipe.lines) == [1]
    assert pipe.told[-1][2] == "daemon", "the remark is none of the streams'"


def test_a_line_without_an_end_takes_no_more_memory_than_the_longest() -> None:
    _, output = read(*[b"x" * 5000] * 100)

    assert len(output.stdout._rest) <= LONGEST_LINE


def test_the_last_words_are_heard_without_a_newline(pipe: Pipe) -> None:
    pipe.bring(b"Killed by\nsignal 9")

    pipe.reader.connection_lost(None)

    assert pipe.lines == ["Killed by", "signal 9"]
    assert pipe.closed == ["signal 9"], "it is told after the last line was read"
    assert pipe.output.closed


def test_the_newest_lines_are_kept() -> None:
    _, output = read(*(f"{number}\n".encode() for number in range(KEPT_LINES + 10)))

    assert list(output.last) == [str(number) for number in range(10, KEPT_LINES + 10)]


SHORT = b"x\n" * (32 * 1024)  # a full pipe of short lines


def dropped_of(lines: list[str]) -> list[int]:
    """The numbers that the log says were dropped."""
    return [int(line[1:].partition(" ")[0]) for line in lines if line.endswith("a second of one worker)")]


def test_the_lines_of_one_read_are_one_write(pipe: Pipe) -> None:
    pipe.bring(b"one\ntwo\nthree\nfo", b"ur\n")

    assert pipe.writes == ["one\ntwo\nthree", "four"]


def test_a_quiet_worker_is_never_waited_for(pipe: Pipe) -> None:
    for _ in range(10):
        pipe.reader.data_received(b"a line\n")
        assert pipe.reading
        pipe.clock.advance(2 * READ_EVERY)


def test_a_full_pipe_waits_for_its_turn(pipe: Pipe) -> None:
    pipe.reader.data_received(SHORT)

    assert not pipe.reading
    pipe.clock.advance(READ_EVERY)
    assert pipe.reading


def test_a_worker_that_writes_small_pieces_without_pause_waits_for_its_turn(pipe: Pipe) -> None:
    pipe.reader.data_received(b"1\n")
    pipe.reader.data_received(b"2\n")

    assert not pipe.reading


@pytest.mark.parametrize("pipes", [1, 3, 20])
def test_however_many_pipes_are_full_they_are_read_so_often_together(pipes: int) -> None:
    clock, pace, reads = FakeClock(), Pace(), [0] * pipes
    all_pipes = [Pipe(pace, clock) for _ in range(pipes)]

    end = clock.now() + 1.0
    while clock.now() < end:
        for number, pipe in enumerate(all_pipes):
            if pipe.reading:
                pipe.reader.data_received(SHORT)
                reads[number] += 1
        clock.step()

    assert sum(reads) == pytest.approx(1.0 / READ_EVERY, abs=pipes + 1)
    assert max(reads) - min(reads) <= 1


def test_the_log_gets_the_first_lines_of_a_second_and_is_told_how_many_were_dropped(pipe: Pipe) -> None:
    printed = [f"{number}\n".encode() for number in range(MOST_LINES + 2000)]

    pipe.bring(*printed[:100], b"".join(printed[100:6000]), b"".join(printed[6000:]))
    pipe.clock.advance(PERIOD)
    pipe.bring(b"after\n")

    *first, told, after = pipe.lines
    assert first == [str(number) for number in range(MOST_LINES)]
    assert dropped_of([told]) == [2000]
    assert after == "after"


def test_a_worker_that_prints_for_ever_is_told_of_once_a_second(pipe: Pipe) -> None:
    end = pipe.clock.now() + 5 * PERIOD
    while pipe.clock.now() < end:
        pipe.bring(SHORT)
    pipe.reader.connection_lost(None)

    dropped = dropped_of(pipe.lines)
    assert 5 <= len(dropped) <= 6
    assert len(pipe.lines) - len(dropped) == len(dropped) * MOST_LINES


@pytest.mark.parametrize("length", [0, 1, 100, 1000, LONGEST_LINE, 3 * LONGEST_LINE])
def test_each_line_is_passed_on_or_counted(length: int, pipe: Pipe) -> None:
    line = b"x" * length + b"\n"

    pipe.bring(*[line * max(1, len(SHORT) // len(line))] * 100)
    pipe.reader.connection_lost(None)

    passed = [line for line in pipe.lines if not line.startswith("(")]
    cut = max(1, -(-length // LONGEST_LINE))
    whole = max(1, len(SHORT) // len(line)) * 100 * cut
    assert len(passed) + sum(dropped_of(pipe.lines)) == whole
    periods = len(dropped_of(pipe.lines))
    assert sum(len(line) + 1 for line in passed) <= max(1, periods) * MOST_BYTES
    assert len(passed) <= max(1, periods) * MOST_LINES


def test_the_last_lines_are_kept_also_when_lines_are_dropped(pipe: Pipe) -> None:
    pipe.bring(*[SHORT] * 50, b"Traceback\nthe rea", b"son")
    pipe.reader.connection_lost(None)

    assert pipe.output.last[-2:] == ["Traceback", "the reason"]
    assert "the reason" not in pipe.lines
    assert pipe.output.last[:-2] == ["x"] * (KEPT_LINES - 2)


def test_what_was_dropped_is_told_before_the_pipe_has_ended(pipe: Pipe) -> None:
    pipe.bring(SHORT)

    pipe.reader.connection_lost(None)

    assert dropped_of(pipe.closed) == [32 * 1024 - MOST_LINES]
    assert not pipe.clock.step() or dropped_of(pipe.lines) == dropped_of(pipe.closed), "and only once"


def test_a_worker_that_has_ended_is_read_at_once(pipe: Pipe) -> None:
    pipe.bring(SHORT)

    pipe.output.hurry()

    assert pipe.reading
    pipe.bring(b"last words\n")
    pipe.clock.advance(1.0)
    assert pipe.output.last[-1] == "last words"


def test_a_pipe_that_ends_while_it_waits_is_not_read_on(pipe: Pipe) -> None:
    pipe.bring(SHORT)

    pipe.reader.connection_lost(None)
    pipe.clock.advance(1.0)

    assert not pipe.reading


def test_a_full_read_costs_no_more_than_its_bytes(pipe: Pipe) -> None:
    """Of 256 KiB, the most that uvloop reads at once, only the lines that the log takes are split."""
    pipe.bring(b"\n" * 256 * 1024)  # the period's allowance is gone

    began = time.thread_time()
    pipe.bring(*[b"\n" * 256 * 1024] * 10)

    assert (time.thread_time() - began) / 10 < 0.005
