"""Optimisations and the trial of a version, as `tsctl describe` and `tsctl check` show them."""

import json

import pytest

from tests.kit.said import said_in
from tests.tsctl.documents import DESCRIBED
from tsctl.extensions.optimizing import COMMAND_LINE

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
    from tsctl.extensions.optimizing.outcomes import trial_lines

    assert trial_lines(TRIAL, 1_090.0) == [
        "trial chosen 1 min 30 s ago: compile: 55 requests/s, 1.10 x the defaults",
        "  default: 50.0 requests/s, 1.00x, drift 4.0e-07, 700.0 MiB, loads in 1.5 s",
        "  compile: 55.0 requests/s, 1.10x, 800.0 MiB, loads in 1.6 s",
        "  int8: refused: it drifts",
    ]
    assert trial_lines(None, 0.0) == []


@said_in("coming.txt")
def test_a_check_tells_which_trial_will_be_made(given: str) -> str:
    from tsctl.extensions.optimizing.outcomes import coming_trial

    changes = json.loads(given)
    return "\n".join(coming_trial(None if changes is None else TRIAL | changes))


OUTCOMES = [
    {"name": "fold", "applied": True, "drift": 2.5e-7, "seconds": 0.123},
    {"name": "bf16", "applied": False, "drift": None, "seconds": 0.5, "reason": "the model fails"},
    {
        "name": "int8",
        "applied": True,
        "drift": 0.02,
        "agreement": 0.9688,
        "agreementWanted": 0.95,
        "agreementInputs": 32,
        "seconds": 3.0,
    },
    {"name": "compile", "applied": True, "drift": 3e-7, "seconds": 35.0, "known": True},
]
TABLE = """
Optimizations
NAME     APPLIED    DRIFT     TOOK  NOTE
fold     yes      2.5e-07   0.12 s
bf16     no             -   0.50 s  the model fails
int8     yes      2.0e-02   3.00 s  best class kept: 96.9% on 32 inputs (at least 95.0% wanted)
compile  yes      3.0e-07  35.00 s  known from an earlier load
trial chosen: compile: 55 requests/s, 1.10 x the defaults
"""


def test_describe_shows_each_optimisation_and_the_trial_below(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"optimize": OUTCOMES, "trial": TRIAL | {"at": None}}})

    assert TABLE in "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())


def test_without_an_optimisation_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    from tsctl.commands.describe import show

    show(DESCRIBED | {"tsctl": DESCRIBED["tsctl"] | {"optimize": [], "trial": None}})

    assert "ptimi" not in capsys.readouterr().out


def test_check_tells_of_each_optimisation_and_of_the_coming_trial() -> None:
    assert COMMAND_LINE.checked({"optimize": OUTCOMES[:2], "trial": TRIAL}) == [
        ("optimize", "fold: applied, drift 2.5e-07"),
        ("optimize", "bf16: left out; the model fails"),
        ("optimize", "auto: compares default; compile; int8 while the model serves"),
    ]
    assert COMMAND_LINE.checked({}) == []
