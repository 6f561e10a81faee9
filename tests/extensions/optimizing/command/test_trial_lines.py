"""A trial of `optimize: auto`, as `tsctl describe` and `tsctl check` show it."""

from typing import Any

import pytest

from tests.tsctl.test_describe_command import DESCRIBED

TRIAL = {
    "state": "chosen", "asked": True, "sets": ["default", "compile", "int8"], "at": 1_000.0, "attempts": 1,
    "text": "compile: 55 requests/s, 1.10 x the defaults", "chosen": ["compile"],
    "rows": [
        {"optimize": "default", "now": True, "perSecond": 50.0, "gain": 1.0, "drift": 4e-7, "agreement": None,
         "memory": 700 << 20, "load": 1.5, "refused": "", "missing": ""},
        {"optimize": "compile", "now": False, "perSecond": 55.0, "gain": 1.1, "drift": None, "agreement": None,
         "memory": 800 << 20, "load": 1.6, "refused": "", "missing": ""},
        {"optimize": "int8", "now": False, "perSecond": None, "gain": None, "drift": None, "agreement": None,
         "memory": 0, "load": 0.0, "refused": "it drifts", "missing": ""},
    ],
}  # fmt: skip


def test_a_trial_is_shown_with_each_set_that_was_compared() -> None:
    from tsctl.terminal.optimized import trial_lines

    assert trial_lines(TRIAL, 1_090.0) == [
        "trial chosen 1 min 30 s ago: compile: 55 requests/s, 1.10 x the defaults",
        "  default: 50.0 requests/s, 1.00x, drift 4.0e-07, 700.0 MiB, loads in 1.5 s",
        "  compile: 55.0 requests/s, 1.10x, 800.0 MiB, loads in 1.6 s",
        "  int8: refused: it drifts",
    ]
    assert trial_lines(None, 0.0) == []


@pytest.mark.parametrize(
    ("trial", "lines"),
    [
        pytest.param(TRIAL, ["auto: compares default; compile; int8 while the model serves"], id="asked for"),
        pytest.param(TRIAL | {"asked": False}, [], id="nobody asked"),
        pytest.param(None, [], id="not tried"),
        pytest.param(
            TRIAL | {"sets": [], "text": "no compiler"}, ["auto: no trial is made: no compiler"], id="an obstacle"
        ),
    ],
)
def test_a_check_tells_which_trial_will_be_made(trial: dict[str, Any] | None, lines: list[str]) -> None:
    from tsctl.terminal.optimized import coming_trial

    assert coming_trial(trial) == lines


def test_describe_shows_the_trial_below_the_optimisations(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"trial": TRIAL | {"at": None}}})

    assert "trial chosen: compile: 55 requests/s" in capsys.readouterr().out
