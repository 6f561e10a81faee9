"""What `make gpu` decides and writes, without a GPU."""

import sys
from itertools import cycle
from pathlib import Path

import pytest

from tests.lab.gpu import page, windows
from tests.lab.gpu.__main__ import PAGE, main
from tests.lab.gpu.busy import watched
from tests.lab.gpu.device import Seen, refusal
from tests.lab.gpu.load import Load
from tests.lab.gpu.rounds import Measured
from tests.lab.gpu.tests import Outcome, outcomes
from tests.lab.gpu.windows import Stabilised

ONE = Seen("2.9.0", True, 1, 1, "Some Card")


@pytest.mark.parametrize(
    ("device", "seen", "sentence"),
    [
        pytest.param("cuda:0", ONE, "", id="a GPU"),
        pytest.param("cpu", Seen("2.9.0+cpu", False, 0, 0), "", id="the CPU, to try it"),
        pytest.param("tpu", ONE, "DEVICE is `tpu`: expected `cuda:0`, or `cpu`.", id="another word"),
        pytest.param("cuda:x", ONE, "DEVICE is `cuda:x`: expected", id="no number"),
        pytest.param(
            "cuda:1", ONE, "There is no GPU `cuda:1`: torch 2.9.0 can use 1. To measure, run it", id="too few"
        ),
        pytest.param("cuda:0", Seen("2.9.0", True, 0, 0), "`make gpu DEVICE=cpu` to try it here", id="none"),
        pytest.param("cuda:0", Seen("2.9.0+cpu", False, 0, 1), "install a build with CUDA", id="torch for CPUs"),
        pytest.param(
            "cuda:0", Seen("2.9.0", True, 1, 0), "the daemon counts 0 in /proc/driver", id="hidden from workers"
        ),
    ],
)
def test_a_device_that_cannot_be_measured_is_named_with_the_remedy(device: str, seen: Seen, sentence: str) -> None:
    reason = refusal(device, seen)

    assert bool(reason) == bool(sentence)
    assert sentence in reason
    assert "\n" not in reason


def test_without_the_device_nothing_runs_and_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cuda:99"]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1


def load(rate: float, mean: float = 0.01) -> Load:
    return Load(rate, 0, mean, mean, mean * 2)


@pytest.mark.parametrize(
    ("recent", "stable"),
    [
        pytest.param([load(100), load(109), load(105)], True, id="three within 10 %"),
        pytest.param([load(1), load(100), load(109), load(105)], True, id="the last three count"),
        pytest.param([load(100), load(100)], False, id="two"),
        pytest.param([load(100), load(111), load(100)], False, id="a throughput apart"),
        pytest.param([load(100), load(100, 0.0112), load(100)], False, id="a latency apart"),
        pytest.param([load(0, 0), load(0, 0), load(0, 0)], False, id="no answers"),
    ],
)
def test_windows_agree(recent: list[Load], stable: bool) -> None:
    assert windows.agree(recent) is stable


def test_windows_are_measured_until_three_agree() -> None:
    given = iter([load(50), load(100), load(102), load(104, 0.0105)])

    found = windows.measure(lambda: next(given))

    assert (found.windows, found.stable) == (4, True)
    assert found.rate == pytest.approx(102)
    assert found.latency == pytest.approx((1 + 1.02 + 1.04 * 1.05) / (1 + 1.02 + 1.04) * 0.01)
    assert (found.p50, found.p99) == (0.0105, 0.021)


def test_after_the_last_trial_a_result_is_said_not_to_be_stable() -> None:
    rates = cycle([50.0, 100.0])

    found = windows.measure(lambda: load(next(rates)), trials=5)

    assert (found.windows, found.stable) == (5, False)


def test_how_busy_the_gpu_is_comes_from_nvidia_smi_while_the_block_runs(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nassert sys.argv[-1].startswith('--loop-ms=')\n"
        "print('0, 80, 900, 81559\\n1, 7, 0, 81559\\n0, 90, 900, 81559\\n0, [N/A], 900, 81559', flush=True)\n"
        f"open({str(tmp_path / 'said')!r}, 'w').close()\ntime.sleep(100)\n"
    )
    program.chmod(0o755)

    with watched("0", str(program)) as busy:
        while not (tmp_path / "said").exists():
            pass

    assert len(busy.readings) == 3
    assert busy.percent == 85


def test_without_that_program_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)

    with watched("0") as busy:
        pass

    assert busy.percent is None


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("1574 passed, 2 skipped in 20.14s", {"passed": 1574, "skipped": 2}),
        ("== 1 failed, 13 passed, 2 errors in 5.92s ==", {"failed": 1, "passed": 13, "error": 2}),
        ("no tests ran in 0.01s", {}),
    ],
)
def test_the_last_line_of_pytest_is_counted(line: str, counts: dict[str, int]) -> None:
    assert outcomes(line) == counts


def measured(ours: float, stable: bool = True) -> Measured:
    triton = Stabilised(ours, 0.03, 0.031, 0.05, 3 if stable else 10, stable)
    return Measured(32, 128, [1000.0, 1100.0, 900.0], [load(ours)] * 3, [80.0, None, 90.0], triton)


def facts(device: str = "cuda:0") -> dict[str, str]:
    return {"device": device, "GPU": "Some Card" if device != "cpu" else "", "network": "resnet50"}


def test_the_page_has_the_ratio_of_each_round_in_the_median_and_says_whether_the_goal_is_met() -> None:
    good, bad = (page.page(facts(), [measured(rate)], None) for rate in (950.0, 500.0))

    assert "| 32 | 128 | 1000.0 | 950.0 | 0.95 | 85 % | 10.0 ms | 20.0 ms | 0 |" in good
    assert "The goal of 0.90 is met." in good
    assert "The goal of 0.90 is missed at batch size 32 (0.50)." in bad
    assert "| 32 | 128 | 950.0 | 30.0 ms | 31.0 ms | 50.0 ms | 3 |" in good
    assert "* GPU: Some Card" in good


def test_the_page_says_what_is_not_stable_was_not_read_or_was_no_gpu() -> None:
    made = measured(950.0, stable=False)
    made.busy = [None]
    text = page.page(facts("cpu"), [made], Outcome({"passed": 7, "failed": 1}, 61.0, False))

    assert "| 10, not stable |" in text
    assert "| not read |" in text
    assert "**These are not figures of a GPU**" in text
    assert "on `cpu`: 7 passed, 1 failed, 61 s." in text


def test_the_committed_page_says_that_nothing_is_measured_yet_or_names_the_gpu() -> None:
    text = PAGE.read_text()

    assert text == page.NOT_YET or "\n* GPU: " in text
    assert "These are not figures of a GPU" not in text
