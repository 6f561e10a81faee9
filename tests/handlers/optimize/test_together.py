"""Defaults are applied at once where a first answer waits, and one after the other where all together drift."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.handlers.optimize.conftest import Forked
from tests.handlers.optimize.loading import answer, loaded
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.optimize import together
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.checks import outcomes
from tsctl.handlers.process.forking import start_apart

pytestmark = pytest.mark.slow


class Started:
    """Starts processes, and counts them."""

    def __init__(self) -> None:
        self.number = 0
        self.most = self._alive = 0

    def __call__(self, work: Callable[[], bytes]) -> Callable[[], bytes]:
        self.number += 1
        self._alive += 1
        self.most = max(self.most, self._alive)
        wait = start_apart(1, (), work)

        def ended() -> bytes:
            self._alive -= 1
            return wait()

        return ended


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    monkeypatch.setenv(outcomes.VARIABLE, str(tmp_path / "trials"))
    return Started()


def at_once(handler: BaseHandler, model_dir: Path, started: Started) -> dict[str, wire.Optimized]:
    reports = optimize(handler, None, model_dir, {}, 2, apart=started)
    return {report.name: report for report in reports}


def test_all_defaults_are_applied_and_compared_in_two_processes_at_the_same_time(
    model_dir: Path, entry: dict[str, str], started: Started
) -> None:
    plain, handler = loaded(model_dir, entry), loaded(model_dir, entry)

    reports = at_once(handler, model_dir, started)

    assert (started.number, started.most) == (2, 2)
    assert [(name, each.applied) for name, each in reports.items()] == [
        ("fast_images", True), ("fold", True), ("channels_last", True),
    ]  # fmt: skip
    assert reports["fold"].drift == reports["channels_last"].drift
    assert all(each.drift is not None and each.drift < 0.01 for each in reports.values())
    assert isinstance(handler.model.bn1, nn.Identity)
    assert handler.model.stem.weight.is_contiguous(memory_format=torch.channels_last)
    assert "image_processing" in vars(handler)
    assert answer(handler) == pytest.approx(answer(plain), rel=0.05)


def test_the_outcomes_are_known_to_the_next_load_which_compares_nothing(
    model_dir: Path, entry: dict[str, str], started: Started
) -> None:
    first = at_once(loaded(model_dir, entry), model_dir, started)

    second = at_once(loaded(model_dir, entry), model_dir, started)

    assert started.number == 2
    assert [each.drift for each in second.values()] == [each.drift for each in first.values()]
    assert [each.known for each in (*first.values(), *second.values())] == [False] * 3 + [True] * 3
    assert len(list(Path(os.environ[outcomes.VARIABLE]).iterdir())) == 1


def test_where_all_together_drift_each_is_checked_and_the_good_ones_stay(
    model_dir: Path, entry: dict[str, str], started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "drift", lambda plain, other: 1.0)
    handler = loaded(model_dir, entry)

    reports = at_once(handler, model_dir, started)

    assert started.number == 3  # and a check of each
    assert all(each.applied for each in reports.values())
    assert isinstance(handler.model.bn1, nn.Identity)


def _dies(work: Callable[[], bytes]) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return work()


def _raises(work: Callable[[], bytes]) -> bytes:
    raise MemoryError


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("ends", [_dies, _raises])
def test_where_a_process_dies_a_check_of_each_follows(
    number: int,
    ends: Callable[[Callable[[], bytes]], bytes],
    model_dir: Path,
    entry: dict[str, str],
    started: Started,
    forked: Forked,
) -> None:
    def apart(work: Callable[[], bytes]) -> Callable[[], bytes]:
        return started(partial(ends, work) if started.number == number - 1 else work)

    handler = loaded(model_dir, entry)
    reports = optimize(handler, None, model_dir, {}, 2, apart=apart)

    assert started.number == 3
    assert all(each.applied for each in reports)
    assert forked.none_is_left()


def test_what_has_nothing_to_do_is_told_and_holds_up_none_of_the_others(
    model_dir: Path, entry: dict[str, str], started: Started
) -> None:
    handler = loaded(model_dir, entry)
    for name, module in list(handler.model.named_modules()):
        if isinstance(module, nn.BatchNorm2d):
            handler.model.set_submodule(name, nn.Identity())
    handler.load_again = lambda: pytest.fail("the model is loaded once")

    reports = at_once(handler, model_dir, started)

    assert started.number == 2
    assert not reports["fold"].applied and reports["fold"].idle and reports["fold"].drift is None
    assert reports["channels_last"].applied and reports["fast_images"].applied
