"""The file that takes what the daemon prints at its start does not grow without end."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from tests.tsctl.conftest import Invoke
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


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        pytest.param(["one", "two"], {"start.log": "onetwo"}, id="a short log goes on"),
        pytest.param(
            ["a long line", "the next"], {"start.log": "the next", "start.log.1": "a long line"},
            id="a long one is renamed at the next start"),
    ],
)  # fmt: skip
def test_the_log(tmp_path: Path, log: Path, lines: list[str], files: dict[str, str]) -> None:
    for line in lines:
        start(tmp_path, line)

    assert kept(log) == files


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


@pytest.mark.parametrize(("names", "waiting", "paused"), [("ab", "", 0.06), ("abcdefgh", "defgh", 0.14)])
def test_a_start_waits_until_its_models_are_registered_but_not_for_ever(
    names: str, waiting: str, paused: float
) -> None:
    pauses: list[float] = []

    assert launch.await_models(cast("Any", Registering(*names)), pauses.append, patience=0.1) == list(waiting)
    assert pauses[:2] == [0.02, 0.04] and sum(pauses) == pytest.approx(paused)


def test_a_start_names_the_services_that_have_an_address_of_their_own() -> None:
    one, other = "http://127.0.0.1:8081", "http://127.0.0.1:8082"

    shared = launch.further_addresses({"managementAddress": one, "metricsAddress": one, "grpcAddresses": ["grpc://a"]})

    assert shared == [("management", one), ("gRPC", "grpc://a")]
    assert launch.further_addresses({"managementAddress": None, "metricsAddress": other}) == [("metrics", other)]


def test_a_state_directory_of_a_user_that_is_none_is_refused(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSCTL_STATE_DIR", "~nobody.at.all/x")

    result = invoke("start")

    assert (result.exit_code, result.stderr) == (
        1, "error: TSCTL_STATE_DIR: `~nobody.at.all/x` begins with an unknown user\n"
    )  # fmt: skip
