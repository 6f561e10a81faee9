"""The outcomes of a check are known to the next load, and a template checks in a process beside itself."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.handlers.device import USUAL, VARIABLE
from tests.handlers.optimize.loading import answer, done, loaded
from tsctl.handlers.optimize import check
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.checks import outcomes
from tsctl.handlers.optimize.checks.drift import drift

ROOT = Path(__file__).parents[3]


class Checks:
    """Counts the comparisons of outputs."""

    def __init__(self) -> None:
        self.number = 0
        self._drift = drift

    def __call__(self, plain: object, other: object) -> float:
        self.number += 1
        return self._drift(plain, other)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Checks:
    """Outcomes are kept; comparisons are counted."""
    monkeypatch.setenv(outcomes.VARIABLE, str(tmp_path / "trials"))
    checks = Checks()
    monkeypatch.setattr(check, "drift", checks)
    return checks


def test_a_check_is_not_repeated_for_the_same_archive_and_way_to_run_it(
    model_dir: Path, entry: dict[str, str], checks: Checks
) -> None:
    first_handler, second_handler = loaded(model_dir, entry), loaded(model_dir, entry)
    first, answered = done(first_handler, "none", "fold", "channels_last"), answer(first_handler)
    compared = checks.number

    second = done(second_handler, "none", "fold", "channels_last")

    assert checks.number == compared == 2
    assert all(each.known for each in second.values())
    assert {name: msgspec.structs.replace(each, seconds=0, known=False) for name, each in second.items()} == {
        name: msgspec.structs.replace(each, seconds=0) for name, each in first.items()
    }
    assert answer(second_handler) == answered


def test_another_batch_size_or_choice_is_checked_by_itself(
    model_dir: Path, entry: dict[str, str], checks: Checks
) -> None:
    ways: list[tuple[tuple[str, ...], int]] = [(("none", "fold"), 2), (("none", "fold"), 3)]
    ways += [(("none", "channels_last"), 2)]
    for asked, batch_size in ways * 2:
        optimize(loaded(model_dir, entry), asked, model_dir, {}, batch_size)

    assert checks.number == len(ways)


# In a process of its own, which has run nothing in parallel, as a template has not: a fork loses the threads of torch.
TEMPLATE = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from torch import nn
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.process.forking import start_apart
from tests.handlers.optimize.loading import loaded

handler, seen = loaded(Path(sys.argv[1]), json.loads(sys.argv[2])), []

def apart(work):
    seen.append(isinstance(handler.model.bn1, nn.BatchNorm2d))
    result = start_apart(2, (), work)()
    seen.append(isinstance(handler.model.bn1, nn.BatchNorm2d))
    return lambda: result

reports = optimize(handler, ("none", "fold"), Path(sys.argv[1]), {}, 2, apart=apart)
told = [[report.applied, report.drift < 0.01] for report in reports]
print(json.dumps([seen, told, isinstance(handler.model.bn1, nn.Identity)]))
"""


def test_in_a_template_the_check_leaves_the_process_untouched_until_its_outcome_is_known(
    model_dir: Path, entry: dict[str, str]
) -> None:
    program = [sys.executable, "-c", TEMPLATE, str(model_dir), json.dumps(entry)]
    on_cpu = os.environ | {VARIABLE: "cpu"}  # a template never calls CUDA, which a fork could not use
    ended = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT, env=on_cpu, timeout=60)
    seen, told, folded = json.loads(ended.stdout.splitlines()[-1])

    assert seen == [True, True]
    assert told == [[True, True]]
    assert folded


def test_a_model_whose_check_dies_is_served_as_it_is(
    model_dir: Path, entry: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)

    with caplog.at_level(logging.INFO):
        reports = optimize(handler, None, model_dir, {}, 2, apart=_dies)

    text = "the process that checked them died (signal 6)"
    assert [report.reason for report in reports] == [text] * len(USUAL)
    assert f"the model is served without optimisations: {text}" in caplog.messages
    assert answer(handler) == before


def _dies(work: Callable[[], bytes]) -> Callable[[], bytes]:
    raise ChildProcessError("signal 6")
