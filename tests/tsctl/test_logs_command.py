"""`tsctl logs`: which file, which lines, and what happens to a file that is being written."""

import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from daemon import paths
from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.commands import logs
from tsctl.commands.logs import tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "daemon.log"
    path.write_text("one\ntwo\nthree\n")
    return path


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """The default state directory, with the logs of a daemon and of two models."""
    directory = tmp_path / "state" / "tsctl"
    paths.logs_dir(directory).mkdir(parents=True)
    paths.daemon_log(directory).write_text("daemon said this\n")
    paths.access_log(directory).write_text("access said this\n")
    for seconds, name, version in ((3, "net", "1.0"), (2, "net", "2.0"), (4, "network", "3.0"), (5, "net-2", "1.0")):
        path = paths.model_log(directory, name, version)
        path.write_text(f"{name} {version} said this\n")
        os.utime(path, (seconds, seconds))
    return directory


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def follow(path: Path, monkeypatch: pytest.MonkeyPatch, *between: Callable[[], object], count: int = 50) -> list[str]:
    """Follow a file; each of `between` happens while the follower sleeps, and then Ctrl-C."""
    happenings = iter(between)

    def sleep(seconds: float) -> None:
        happening = next(happenings, None)
        if happening is None:
            raise KeyboardInterrupt
        happening()

    monkeypatch.setattr(logs, "time", SimpleNamespace(sleep=sleep))
    seen: list[str] = []
    with contextlib.suppress(KeyboardInterrupt):
        for line in tail(path, count, following=True):
            seen.append(line)  # noqa: PERF402 - what came before the interrupt counts
    return seen


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, ["three\n"]),
        (2, ["two\n", "three\n"]),
        (3, ["one\n", "two\n", "three\n"]),
        (50, ["one\n", "two\n", "three\n"]),
    ],
)
def test_the_last_lines_of_a_file(log: Path, count: int, expected: list[str]) -> None:
    assert list(tail(log, count, following=False)) == expected


def test_a_last_line_without_an_end_is_a_line(log: Path) -> None:
    append(log, "fo")

    assert list(tail(log, 1, following=False)) == ["fo"]


def test_bytes_that_are_no_text_are_shown_as_replaced(log: Path) -> None:
    log.write_bytes(b"caf\xe9\n")

    assert list(tail(log, 1, following=False)) == ["caf\ufffd\n"]


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(tail(tmp_path / "nothing.log", 5, following=False)) == []


def test_following_shows_what_is_added(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = follow(log, monkeypatch, lambda: append(log, "four\nfi"), lambda: None, lambda: append(log, "ve\n"), count=1)

    assert seen == ["three\n", "four\n", "fi", "ve\n"]


def test_following_waits_for_a_file_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "later.log"

    seen = follow(path, monkeypatch, lambda: None, lambda: append(path, "first\n"), lambda: append(path, "second\n"))

    assert seen == ["first\n", "second\n"]


def test_following_goes_on_with_the_new_file_after_a_rotation(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rotate() -> None:
        log.rename(log.with_suffix(".log.1"))
        append(log, "new\n")

    seen = follow(log, monkeypatch, rotate, lambda: append(log, "newer\n"), count=1)

    assert seen == ["three\n", "new\n", "newer\n"]


def test_what_was_written_just_before_a_rotation_is_not_lost(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_and_rotate() -> None:
        append(log, "last words\n")
        log.rename(log.with_suffix(".log.1"))
        append(log, "new\n")

    seen = follow(log, monkeypatch, write_and_rotate, count=0)

    assert seen == ["last words\n", "new\n"]


def test_a_file_that_is_gone_for_a_while_is_waited_for(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = log.with_suffix(".log.1")

    seen = follow(log, monkeypatch, lambda: log.rename(old), lambda: append(log, "new\n"), count=0)

    assert seen == ["new\n"]


def test_a_file_that_was_emptied_is_read_from_its_start(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = follow(log, monkeypatch, lambda: log.write_text("new\n"), count=0)

    assert seen == ["new\n"]


def test_a_follower_that_is_stopped_leaves_no_file_open(log: Path) -> None:
    follower = tail(log, 2, following=True)

    seen = list(itertools.islice(follower, 2))
    follower.close()  # type: ignore[attr-defined]  # an open file would be a ResourceWarning, which is an error

    assert seen == ["two\n", "three\n"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], "daemon said this\n", id="the daemon's"),
        pytest.param(["--access"], "access said this\n", id="the access log"),
        pytest.param(["net/2.0"], "net 2.0 said this\n", id="a version's"),
        pytest.param(["net"], "net 1.0 said this\n", id="a model's newest, without a daemon"),
        pytest.param(["-n", "0"], "", id="none of its lines"),
    ],
)
def test_which_log_is_shown(invoke: Invoke, state_dir: Path, arguments: list[str], expected: str) -> None:
    result = invoke("logs", *arguments)

    assert result.exit_code == 0, result.stderr
    assert result.stdout == expected


def test_the_daemon_knows_the_default_version_and_its_state_directory(
    invoke: Invoke, state_dir: Path, tmp_path: Path, daemon: FakeDaemon
) -> None:
    elsewhere = state_dir.rename(tmp_path / "elsewhere")
    daemon.answer("GET /tsctl/status", {"stateDir": str(elsewhere)})
    daemon.answer("GET /models/net", [{"modelVersion": "2.0"}])

    result = invoke("logs", "net")

    assert result.stdout == "net 2.0 said this\n"


def test_the_state_directory_may_be_given(invoke: Invoke, state_dir: Path, tmp_path: Path) -> None:
    elsewhere = state_dir.rename(tmp_path / "elsewhere")

    result = invoke("logs", "--state-dir", elsewhere)

    assert result.stdout == "daemon said this\n"


def test_a_user_without_a_home_is_told_what_to_name(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise paths.PathError("user 1000 has no home directory to keep state in")

    monkeypatch.setattr(paths, "default_state_dir", homeless)

    for verb in ("logs", "start"):
        result = invoke(verb)

        assert result.exit_code == 1
        assert result.stderr.startswith("error: user 1000 has no home directory to keep state in\nhint: name ")


def test_a_daemon_elsewhere_needs_no_home(
    invoke: Invoke, state_dir: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(paths, "default_state_dir", None)
    daemon.answer("GET /tsctl/status", {"stateDir": str(state_dir)})

    result = invoke("logs")

    assert result.stdout == "daemon said this\n"


def test_a_log_that_is_not_there_yet_is_said(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("logs")

    assert result.exit_code == 1
    assert result.stderr == f"error: log file `{tmp_path}/state/tsctl/logs/daemon.log` does not exist yet\n"


def test_a_model_that_nobody_knows_is_the_daemons_refusal(invoke: Invoke, state_dir: Path, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"stateDir": str(state_dir)})
    daemon.answer("GET /models/other", {"message": "Model not found: other"}, 404)

    result = invoke("logs", "other")

    assert result.exit_code == 1
    assert result.stderr == "error: Model not found: other\n"
