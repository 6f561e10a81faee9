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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--daemon"], "daemon said this\n", id="the daemon's"),
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


ZERO, ACCESS, TWO, THREE, FOUR = (
    "INFO    zero",
    '127.0.0.1:4000 "GET /ping" 200 0.1ms an-id',
    "net/1.0 7 stdout two",
    "ERROR   three",
    "net/1.0 7 stderr four",
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], [ZERO, ACCESS, TWO, THREE, "", FOUR], id="all logs, by time"),
        pytest.param(["-n", "3"], [THREE, "", FOUR], id="the last lines of all together"),
        pytest.param(["--since", stamp_of(T + 2)], [TWO, THREE, "", FOUR], id="since a time"),
        pytest.param(["--since", stamp_of(T + 2), "-n", "1"], [FOUR], id="the last of those"),
        pytest.param(["--daemon", "net"], [ZERO, TWO, THREE, "", FOUR], id="the daemon's and a model's"),
        pytest.param(["--daemon", "--access"], [ZERO, ACCESS, THREE, ""], id="the daemon's and the access log"),
        pytest.param(["net/1.0", "-n", "1"], ["7 stderr four"], id="a model alone is not named"),
    ],
)
def test_the_logs_are_one_story(invoke: Invoke, story: Path, arguments: list[str], expected: list[str]) -> None:
    result = invoke("logs", *arguments)

    assert result.exit_code == 0, result.stderr
    shown = [line.partition(" ")[2] for line in result.stdout.splitlines()]
    assert shown == expected
    assert ("Traceback" in result.stdout) == ("" in expected)


def test_json_is_an_entry_a_line(invoke: Invoke, story: Path) -> None:
    result = invoke("logs", "--json")

    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["log"] for entry in entries] == ["daemon", "access", "model", "daemon", "model"]
    assert [entry["time"] for entry in entries] == [stamp_of(T + number) for number in range(5)]
    assert entries[3] | {"time": ""} == {"time": "", "level": "error", "log": "daemon", "text": "three\nTraceback"}
    assert (entries[1]["status"], entries[1]["ms"], entries[1]["request"]) == (200, 0.1, "an-id")
    assert (entries[4]["model"], entries[4]["pid"], entries[4]["stream"]) == ("net", 7, "stderr")


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

    result = invoke("logs", "--daemon", "--state-dir", elsewhere)

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

    result = invoke("logs", "--daemon")

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
