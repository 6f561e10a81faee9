"""Fixtures: the same machine for every test, and a house without models."""

from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.models import build


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "usable_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
