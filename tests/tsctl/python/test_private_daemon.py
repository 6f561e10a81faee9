"""The folders and the environment of private daemons; their processes are in tests/e2e/test_serving_from_python.py."""

import fcntl
import os
from pathlib import Path

import pytest

from tsctl.python.serving.private_daemon import PREFIX, own_environment, remove_leftovers
from tsctl.serving import place


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


def test_the_command_and_the_library_leave_each_others_folders_alone(tmp_path: Path) -> None:
    ours, commands = folder_of(tmp_path), tmp_path / f"{place.PREFIX}a"
    commands.mkdir()

    place.remove_leftovers(tmp_path, 1e12)
    assert (ours.exists(), commands.exists()) == (True, False)

    commands.mkdir()
    (commands / "owner").touch()
    remove_leftovers(tmp_path)
    assert (ours.exists(), commands.exists()) == (False, True)
