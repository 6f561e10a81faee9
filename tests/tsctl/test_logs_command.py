"""`tsctl logs`: which logs, which lines, in which form."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.commands import logs
from tsctl.daemon import paths
from tsctl.logs.lines import stamp_of

T = 1_700_000_000.0


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


def test_without_a_daemon_a_models_log_is_its_newest(invoke: Invoke, state_dir: Path) -> None:
    assert invoke("logs", "net").stdout == "net 1.0 said this\n"


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """The logs of a daemon that broke off while a model printed."""
    directory = tmp_path / "state" / "tsctl"
    paths.logs_dir(directory).mkdir(parents=True)
    at = [stamp_of(T + number) for number in range(5)]
    paths.daemon_log(directory).write_text(f"{at[0]} INFO    zero\n{at[3]} ERROR   three\nTraceback\n")
    paths.access_log(directory).write_text(f'{at[1]} 127.0.0.1:4000 "GET /ping" 200 0.1ms an-id\n')
    paths.model_log(directory, "net", "1.0").write_text(f"{at[2]} 7 stdout two\n{at[4]} 7 stderr four\n")
    return directory


@pytest.mark.parametrize("as_json", [False, True])
def test_following_shows_what_is_added_until_ctrl_c(
    invoke: Invoke, story: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    happenings: Iterator[str] = iter([f"{stamp_of(T + 5)} INFO    five\n", "Traceback of five\n"])

    def sleep(seconds: float) -> None:
        try:
            text = next(happenings)
        except StopIteration:
            raise KeyboardInterrupt from None
        with paths.daemon_log(story).open("a") as file:
            file.write(text)

    monkeypatch.setattr("tsctl.logs.merging.time.sleep", sleep)

    result = invoke("logs", "-f", "--daemon", "-n", "2", *(["--json"] if as_json else []))

    assert result.exit_code == 0, result.stderr
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()] if as_json else []
    shown = "\n".join(texts) if as_json else result.stdout
    positions = [shown.index(text) for text in ("three", "Traceback\n", "five", "Traceback of five")]
    assert positions == sorted(positions)


def test_the_number_of_lines_is_50_unless_a_time_is_given(invoke: Invoke, story: Path) -> None:
    text = "".join(f"{stamp_of(T + number)} INFO    {number}\n" for number in range(60))
    paths.daemon_log(story).write_text(text)

    assert len(invoke("logs", "--daemon").stdout.splitlines()) == logs.LINES == 50
    assert len(invoke("logs", "--daemon", "--since", stamp_of(T + 1)).stdout.splitlines()) == 59


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

    result = invoke("logs", "--daemon")

    assert result.stdout == "daemon said this\n"
