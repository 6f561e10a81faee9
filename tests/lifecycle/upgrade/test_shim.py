"""The remaining process of a supervised daemon knows the current daemon, and how it ended."""

from pathlib import Path

import pytest

from tsctl.daemon.lifecycle.upgrade.shim import daemon_of, exit_code, lives


@pytest.mark.parametrize(
    ("text", "living", "daemon"),
    [
        pytest.param("12\n", {11, 12}, 12, id="the one that has taken over"),
        pytest.param(" 7\n", {7, 11}, 7, id="a shorter pid"),
        pytest.param("12\n", {11}, 11, id="one that has ended is none"),
        pytest.param("", {11}, 11, id="an empty file"),
        pytest.param("rubbish", {11}, 11, id="no pid"),
        pytest.param(None, {11}, 11, id="no file: it stops"),
    ],
)
def test_who_the_daemon_is(tmp_path: Path, text: str | None, living: set[int], daemon: int) -> None:
    file = tmp_path / "control.pid"
    if text is not None:
        file.write_text(text)

    assert daemon_of(str(file), 11, living.__contains__) == daemon


@pytest.mark.parametrize(("code", "told"), [(0, 0), (1, 1), (-9, 137), (-15, 143)])
def test_an_exit_code_is_told_as_a_shell_does(code: int, told: int) -> None:
    assert exit_code(code) == told


def test_nobody_lives_with_a_pid_that_cannot_be() -> None:
    assert lives(1)
    assert not lives(2**30)
