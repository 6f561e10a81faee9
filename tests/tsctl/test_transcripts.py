"""What commands ask of the daemon, and all that they say: each file of tests/tsctl/transcripts is compared whole."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.transcripts import Transcript, all_transcripts

WRITES = "WRITE_TRANSCRIPTS" in os.environ  # python -m tests.lab transcripts


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """100 s after the epoch, in UTC, in a folder of its own."""
    (tmp_path / "work").mkdir()
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path / "work")
        patched.setenv("TZ", "UTC")
        patched.setattr(time, "time", lambda: 100.0)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("told", [*all_transcripts()], ids=lambda told: f"{told.file.stem}: {told.title}")
def test_a_command_asks_and_says_all_of_this(told: Transcript, daemon: FakeDaemon, invoke: Invoke) -> None:
    made = told.play(daemon, Path.cwd(), invoke)

    if WRITES:
        told.write(made)
    else:
        assert made == told.lines
