"""What a worker prints arrives line by line, whatever pieces the pipe brings."""

import pytest

from daemon.workers.processes.output import KEPT_LINES, LONGEST_LINE, OutputReader


def read(*pieces: bytes) -> tuple[list[str], OutputReader]:
    lines: list[str] = []
    reader = OutputReader(lines.append, lambda: None)
    for piece in pieces:
        reader.data_received(piece)
    return lines, reader


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
        pytest.param([b"\xff\n"], ["\ufffd"], id="what is no text is replaced"),
    ],
)
def test_lines(pieces: list[bytes], lines: list[str]) -> None:
    assert read(*pieces)[0] == lines


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"x" * (2 * LONGEST_LINE + 5) + b"\n"], id="in one piece"),
        pytest.param([b"x" * 1000] * 32 + [b"x" * (2 * LONGEST_LINE + 5 - 32000), b"\n"], id="in many pieces"),
    ],
)
def test_a_line_that_is_too_long_is_cut(pieces: list[bytes]) -> None:
    lines, _ = read(*pieces)

    assert [len(line) for line in lines] == [LONGEST_LINE, LONGEST_LINE, 5]


def test_the_longest_line_is_not_cut() -> None:
    lines, _ = read(b"x" * LONGEST_LINE + b"\nnext\n")

    assert [len(line) for line in lines] == [LONGEST_LINE, 4]


def test_a_line_without_an_end_takes_no_more_memory_than_the_longest() -> None:
    _, reader = read(*[b"x" * 5000] * 100)

    assert len(reader._rest) <= LONGEST_LINE


def test_the_last_words_are_heard_without_a_newline() -> None:
    closed: list[str] = []
    lines: list[str] = []
    reader = OutputReader(lines.append, lambda: closed.append(lines[-1]))
    reader.data_received(b"Killed by\nsignal 9")

    reader.connection_lost(None)

    assert lines == ["Killed by", "signal 9"]
    assert closed == ["signal 9"], "it is told after the last line was read"
    assert reader.closed


def test_the_newest_lines_are_kept() -> None:
    _, reader = read(*(f"{number}\n".encode() for number in range(KEPT_LINES + 10)))

    assert list(reader.last) == [str(number) for number in range(10, KEPT_LINES + 10)]
