"""The archive of a small network, and the processes that a test forks."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.handlers.optimize.nets import put_archive


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


@pytest.fixture
def entry(model_dir: Path) -> dict[str, str]:
    return put_archive(model_dir)
