"""The file that takes what the daemon prints at its start does not grow without end."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from tsctl import launch, starting
from tsctl.daemon import paths


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(starting, "ROTATED_BYTES", 10)
    return paths.logs_dir(tmp_path) / "start.log"


def start(state: Path, line: str) -> None:
    """Start a daemon that prints a line."""
    descriptor = starting._open_log(state)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def kept(log: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in log.parent.iterdir()}


def test_a_short_log_goes_on(tmp_path: Path, log: Path) -> None:
    for line in ("one", "two"):
        start(tmp_path, line)

    assert kept(log) == {"start.log": "onetwo"}


def test_a_long_log_is_renamed_at_the_next_start(tmp_path: Path, log: Path) -> None:
    for line in ("a long line", "the next"):
        start(tmp_path, line)

    assert kept(log) == {"start.log": "the next", "start.log.1": "a long line"}


def test_so_many_are_kept_the_newest_first(tmp_path: Path, log: Path) -> None:
    for number in range(20):
        start(tmp_path, f"a long line {number}")

    assert kept(log) == {"start.log": "a long line 19"} | {
        f"start.log.{number}": f"a long line {19 - number}" for number in range(1, starting.KEPT_FILES + 1)
    }


class Registering:
    """Answers with the models that are still being registered, one fewer each time."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def json(self, method: str, target: str) -> dict[str, list[str]]:
        assert (method, target) == ("GET", "/tsctl/status")
        names, self.names = list(self.names), self.names[1:]
        return {"registering": names}


def test_a_start_waits_until_its_models_are_registered() -> None:
    pauses: list[float] = []

    assert launch.await_models(cast("Any", Registering("a", "b")), pauses.append) == []
    assert pauses == [0.02, 0.04]


def test_a_start_does_not_wait_for_ever() -> None:
    pauses: list[float] = []

    waiting = launch.await_models(cast("Any", Registering(*"abcdefgh")), pauses.append, patience=0.1)

    assert waiting == list("defgh")
    assert sum(pauses) == pytest.approx(0.14)
