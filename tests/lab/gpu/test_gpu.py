"""What `make gpu` judges: when a measurement is stable, and whether the goal is met."""

import pytest

from tests.lab.gpu import page, windows
from tests.lab.gpu.__main__ import PAGE, main
from tests.lab.gpu.load import Load
from tests.lab.gpu.rounds import Measured


def load(rate: float, mean: float = 0.01) -> Load:
    return Load(rate, 0, mean, mean, mean * 2)


def test_without_the_device_nothing_runs_and_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cuda:99"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("recent", "stable"),
    [
        pytest.param([load(1), load(100), load(109), load(105)], True, id="the last three are within 10 %"),
        pytest.param([load(100), load(100)], False, id="two"),
        pytest.param([load(100), load(111), load(100)], False, id="a throughput apart"),
        pytest.param([load(100), load(100, 0.0112), load(100)], False, id="a latency apart"),
        pytest.param([load(0, 0), load(0, 0), load(0, 0)], False, id="no answers"),
    ],
)
def test_windows_agree(recent: list[Load], stable: bool) -> None:
    assert windows.agree(recent) is stable


@pytest.mark.parametrize(("rate", "verdict"), [(950.0, "is met."), (500.0, "is missed at batch size 32 (0.50).")])
def test_the_goal_is_judged_by_the_median_of_the_rounds(rate: float, verdict: str) -> None:
    triton = windows.Stabilised(rate, 0.03, 0.031, 0.05, 3, True)
    measured = Measured(32, 128, [1000.0, 1100.0, 900.0], [load(rate)] * 3, [80.0, None, 90.0], triton)

    made = page.page({"device": "cuda:0", "GPU": "Some Card", "network": "resnet50"}, [measured], None)

    assert f"The goal of 0.90 {verdict}" in made


def test_the_committed_page_says_that_nothing_is_measured_yet_or_names_the_gpu() -> None:
    text = PAGE.read_text()

    assert text == page.NOT_YET or "\n* GPU: " in text
    assert "These are not figures of a GPU" not in text
