"""The measurement of token streams: both loops make the same tokens, and the figures are medians of rounds."""

import pytest

from tests.lab.benchmarks.streams import bare
from tests.lab.benchmarks.streams.client import tokens_of
from tests.lab.benchmarks.streams.cpu import Used
from tests.lab.benchmarks.streams.rounds import LONG, Loop, Measured, report

TWO = b"HTTP/1.1 200 OK\r\na: b\r\n\r\n2\r\n1 \r\n3\r\n10 \r\n0\r\n\r\n"


def test_the_loop_without_a_server_gives_each_request_its_tokens() -> None:
    first, last = bare.run(3, 4)

    assert 0.001 <= first < last
    assert last >= 0.004


def test_tokens_are_the_chunks_of_an_answer_and_an_error_has_none() -> None:
    assert tokens_of(TWO) == ["1 ", "10 "]
    assert tokens_of(TWO.replace(b"200", b"503")) == []


def test_the_figures_are_medians_of_rounds_each_compared_with_its_own() -> None:
    made = Measured(
        bare=Loop([100.0, 200.0, 100.0], [[0.001] * 3, [0.002] * 3, [0.001] * 3]),
        served=Loop([90.0, 190.0, 99.0], [[0.002, 0.003, 0.009], [0.003] * 3, [0.004] * 3]),
        used={"worker": [Used(LONG * 0.0001, 0.0)] * 3},
    )
    lines: list[str] = []

    report(made, lines.append)

    assert made.ratio() == pytest.approx(0.95)
    assert made.over() == pytest.approx(0.002)
    assert "ratio 0.950 (0.900 to 0.990); first token 2.00 ms later" in lines
    assert lines[-1] == "worker      100 µs on a core in each step,    0 µs ready without one"
