"""A machine with a compiler and no quota, whatever this one has."""

import pytest

from tsctl.daemon.extensions.optimizing import building


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "find_compiler", lambda: "g++")
    monkeypatch.setattr(building, "has_quota", lambda: False)
    monkeypatch.delenv("OPTIMIZE_TRIALS_DIR", raising=False)
