"""Measurements of speed that a test decides."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.handlers.optimize.nets import put_archive
from tsctl.handlers.optimize import trial
from tsctl.handlers.optimize.trials.speed import Speed


class Races:
    """Stands in for the measurement: runs both sides once, and gives the gain that the test has chosen."""

    def __init__(self) -> None:
        self.gain = 2.0
        self.noise = 1.0
        self.number = 0
        self.budgets: list[float] = []

    def __call__(
        self, without: Callable[[], object], having: Callable[[], object], clock: object, budget: float
    ) -> Speed:
        self.number += 1
        self.budgets.append(budget)
        without()
        having()
        return Speed(0.5 * self.gain, 0.5, self.noise)


class Forked(list[int]):
    """The processes that a test has forked; the process of the tests may have others."""

    def none_is_left(self) -> bool:
        """Return whether each has been waited for."""
        for pid in self:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
                return False
        return bool(self)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> Forked:
    pids, fork = Forked(), os.fork

    def noted() -> int:
        pid = fork()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noted)
    return pids


@pytest.fixture(autouse=True)
def races(monkeypatch: pytest.MonkeyPatch) -> Races:
    races = Races()
    monkeypatch.setattr(trial, "race", races)
    return races


@pytest.fixture
def entry(model_dir: Path) -> dict[str, str]:
    return put_archive(model_dir)
