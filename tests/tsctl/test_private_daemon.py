"""The folders and the environment of private daemons; their processes are in tests/e2e/test_serving_from_python.py."""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tsctl import private_daemon, starting
from tsctl.private_daemon import PREFIX, SOCKET, UNBEGUN, PrivateDaemon, own_environment, remove_leftovers
from tsctl.starting import NotStarted

NOW = time.time()
SLEEPER = (sys.executable, "-c", "import signal; signal.pause()")


def folder_of(root: Path, name: str = "a") -> Path:
    folder = root / f"{PREFIX}{name}"
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "lock").touch()
    return folder


def test_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    folder, other = folder_of(tmp_path), tmp_path / "another"
    other.mkdir()

    remove_leftovers(tmp_path, NOW)

    assert not folder.exists()
    assert other.exists()


@pytest.mark.parametrize("lock", [".", "state/lock"])
def test_the_folder_of_a_process_or_daemon_that_lives_stays(tmp_path: Path, lock: str) -> None:
    folder = folder_of(tmp_path)

    held = os.open(folder / lock, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    remove_leftovers(tmp_path, NOW)
    os.close(held)

    assert folder.exists()
    remove_leftovers(tmp_path, NOW)
    assert not folder.exists()


@pytest.mark.parametrize(("age", "left"), [(0.0, True), (UNBEGUN, True), (UNBEGUN + 1, False)])
def test_an_empty_folder_that_nobody_locks_stays_while_its_maker_may_be_about_to(
    tmp_path: Path, age: float, *, left: bool
) -> None:
    folder = tmp_path / f"{PREFIX}a"
    folder.mkdir()

    remove_leftovers(tmp_path, folder.stat().st_mtime + age)

    assert folder.exists() is left


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = folder_of(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}link").symlink_to(target)

    remove_leftovers(tmp_path, NOW)

    assert target.exists()


def test_the_folder_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: -1)

    remove_leftovers(tmp_path, NOW)

    assert folder.exists()


def test_the_users_own_daemon_has_no_say() -> None:
    environment = {"TSCTL_TOKEN": "a", "TSCTL_SOCKET": "b", "TS_CONFIG_FILE": "c", "PATH": "d", "TS_OTHER": "e"}

    assert own_environment(environment) == {"PATH": "d", "TS_OTHER": "e"}


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files whose path is one character too long for a socket in it."""
    folder = tmp_path / ("x" * (108 - len(f"{tmp_path}//{PREFIX}12345678/{SOCKET}")))
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(private_daemon, "_SHORT", tmp_path / "short")
    return folder


def test_a_folder_for_which_the_temporary_one_is_too_deep_is_in_tmp(deep: Path, tmp_path: Path) -> None:
    killed = folder_of(tmp_path / "short")

    folder, lock = private_daemon._own_folder(for_socket=True)
    os.close(lock)

    assert (folder.parent, list(deep.iterdir())) == (tmp_path / "short", [])
    assert not killed.exists()


def test_a_folder_without_a_socket_may_be_deep(deep: Path) -> None:
    folder, lock = private_daemon._own_folder(for_socket=False)
    os.close(lock)

    assert folder.parent == deep


def test_a_place_that_is_too_deep_is_told_as_such(deep: Path) -> None:
    with pytest.raises(NotStarted) as raised:
        private_daemon._own_folder(for_socket=True)
    assert f"a shorter path than `{deep}`" in raised.value.hint


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(private_daemon, "_SHORT", tmp_path / "none")

    with pytest.raises(NotStarted, match="cannot make a temporary folder") as raised:
        PrivateDaemon(())
    assert "TMPDIR" in raised.value.hint


def test_a_daemon_that_does_not_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(starting, "DAEMON", (sys.executable, "-c", "print('no luck'); raise SystemExit(3)"))

    with pytest.raises(NotStarted, match="ended with exit code 3 before it listened") as raised:
        PrivateDaemon(())
    assert (raised.value.details, list(tmp_path.iterdir())) == ("no luck", [])


def test_ctrl_c_before_the_daemon_listens_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[subprocess.Popen[bytes]] = []

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(starting, "DAEMON", SLEEPER)
    monkeypatch.setattr(starting, "subprocess", SimpleNamespace(Popen=Recorded, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr(starting, "select", SimpleNamespace(select=interrupted))

    with pytest.raises(KeyboardInterrupt):
        PrivateDaemon(())
    assert ([each.returncode for each in made], list(tmp_path.iterdir())) == ([-9], [])


def test_a_daemon_that_does_not_listen_in_its_time_leaves_the_log_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(starting, "DAEMON", SLEEPER)
    monkeypatch.setattr(private_daemon, "TIMEOUT", 0.0)

    with pytest.raises(NotStarted, match="did not listen within 0 s") as raised:
        PrivateDaemon(())
    remove_leftovers(tmp_path, NOW)

    assert Path(raised.value.hint.split("`")[1]).is_file()


@contextlib.contextmanager
def locked_by(pid: int, *files: Path) -> Iterator[None]:
    """Lock files as a daemon with this pid does."""
    with contextlib.ExitStack() as locks:
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{pid}\n")
            fcntl.flock(locks.enter_context(file.open()), fcntl.LOCK_EX)
        yield


def started_by(
    monkeypatch: pytest.MonkeyPatch, process: "subprocess.Popen[bytes]", socket: Path | None = None
) -> PrivateDaemon:
    """Return one whose daemon is this process, and is killed at once where it does not end by itself."""
    monkeypatch.setattr(private_daemon, "started", lambda *_: (process, {}))
    for patience in ("GRACE", "STOP_MARGIN"):
        monkeypatch.setattr(private_daemon, patience, 0.0)
    return PrivateDaemon((), socket)


def test_the_folder_of_a_daemon_that_has_only_begun_stays_after_kill_9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def begin(arguments: object, state_dir: Path, descriptors: tuple[int, ...], *_: object) -> tuple[Any, Any]:
        del arguments
        state_dir.mkdir()
        begun.append(subprocess.Popen(SLEEPER, pass_fds=descriptors))
        return begun[0], {}

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(private_daemon, "started", begin)

    PrivateDaemon(()).forget()  # closes what the kernel would close
    remove_leftovers(tmp_path, NOW)
    before = list(tmp_path.iterdir())
    begun[0].kill()
    begun[0].wait()
    remove_leftovers(tmp_path, NOW)

    assert (len(before), list(tmp_path.iterdir())) == (1, [])


def test_another_daemon_at_the_same_socket_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen((sys.executable, "-c", ""))
    daemon = started_by(monkeypatch, ended, tmp_path / "control.sock")

    with subprocess.Popen(SLEEPER) as other:
        with locked_by(other.pid, tmp_path / "control.pid"):
            daemon.stop()

        assert (ended.returncode is not None, other.poll()) == (True, None)
        other.kill()


@pytest.mark.parametrize("error", [None, OSError(30, "Read-only file system"), KeyboardInterrupt()])
def test_a_daemon_is_stopped_and_leaves_its_folder_where_that_can_be_marked(
    error: BaseException | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        assert error is not None
        raise error

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process = subprocess.Popen(SLEEPER)
    daemon = started_by(monkeypatch, process)
    if error is not None:
        monkeypatch.setattr(Path, "chmod", fails)

    with contextlib.suppress(KeyboardInterrupt):
        daemon.stop(keep=True)
    remove_leftovers(tmp_path, NOW)
    assert (process.returncode, list(tmp_path.iterdir())) == (-9, [] if error else [daemon.folder])


def test_after_an_upgrade_both_daemons_are_killed_if_they_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old = subprocess.Popen(SLEEPER)
    daemon = started_by(monkeypatch, old)

    files = daemon.state_dir / "lock", daemon.folder / "control.pid"
    with subprocess.Popen(SLEEPER) as successor, locked_by(successor.pid, *files):
        daemon.stop()
        successor.wait()

    assert (old.returncode, successor.returncode) == (-9, -9)
