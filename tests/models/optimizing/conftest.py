"""A machine with a compiler, whatever this one has."""

import pytest

from daemon.models.optimizing import building


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "find_compiler", lambda: "g++")
    monkeypatch.delenv("OPTIMIZE_TRIALS_DIR", raising=False)
