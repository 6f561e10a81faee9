"""The folders and the environment of private daemons; their processes are in tests/e2e/test_serving_from_python.py."""

import fcntl
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tsctl import private_daemon, starting
from tsctl.private_daemon import PREFIX, PrivateDaemon, own_environment, remove_leftovers
from tsctl.starting import NotStarted


def folder_of(root: Path, name: str = "a") -> Path:
    folder = root / f"{PREFIX}{name}"
    (folder / "state").mkdir(parents=True)
    (folder / "owner").touch()
    (folder / "state" / "lock").touch()
    return folder


def test_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    folder, other = folder_of(tmp_path), tmp_path / "another"
    other.mkdir()

    remove_leftovers(tmp_path)

    assert not folder.exists()
    assert other.exists()


@pytest.mark.parametrize("lock", ["owner", "state/lock"])
def test_the_folder_of_a_process_or_daemon_that_lives_stays(tmp_path: Path, lock: str) -> None:
    folder = folder_of(tmp_path)

    with open(folder / lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        remove_leftovers(tmp_path)

    assert folder.exists()


def test_a_folder_that_is_being_made_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "owner").unlink()

    remove_leftovers(tmp_path)

    assert folder.exists()


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = folder_of(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}link").symlink_to(target)

    remove_leftovers(tmp_path)

    assert target.exists()


def test_the_folder_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: -1)

    remove_leftovers(tmp_path)

    assert folder.exists()


def test_the_users_own_daemon_has_no_say() -> None:
    environment = {"TSCTL_TOKEN": "a", "TSCTL_SOCKET": "b", "TS_CONFIG_FILE": "c", "PATH": "d", "TS_OTHER": "e"}

    assert own_environment(environment) == {"PATH": "d", "TS_OTHER": "e"}


def test_a_folder_for_which_the_temporary_one_is_too_deep_is_in_tmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    folder = private_daemon._make_folder()

    assert (folder.parent, list(deep.iterdir())) == (Path("/tmp"), [])
    folder.rmdir()


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(NotStarted, match="cannot make a temporary folder") as raised:
        PrivateDaemon(())
    assert "TMPDIR" in raised.value.hint


def test_a_daemon_that_does_not_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(starting, "DAEMON", (sys.executable, "-c", "print('no luck'); raise SystemExit(3)"))

    with pytest.raises(NotStarted, match="ended with exit code 3 before it listened") as raised:
        PrivateDaemon(())
    assert (raised.value.details, list(tmp_path.iterdir())) == ("no luck", [])
