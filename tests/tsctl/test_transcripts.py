"""What commands ask of the daemon, and all that they say: each file of tests/tsctl/transcripts is compared whole."""

import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit.told import Told, told_in
from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.transcripts import play

TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def moment(utc: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """100 s after the epoch, in UTC, in a folder of its own."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(time, "time", lambda: 100.0)
    monkeypatch.setattr(zipfile, "time", SimpleNamespace(time=lambda: 1e9, localtime=time.localtime))  # from 1980 on


@told_in([*TESTS.glob("tsctl/transcripts/*.txt"), *TESTS.glob("extensions/*/tsctl/transcripts/*.txt")])
def test_a_command_asks_and_says_all_of_this(told: Told, daemon: FakeDaemon, invoke: Invoke) -> None:
    told.compare(play(told.lines, daemon, Path.cwd(), invoke))
