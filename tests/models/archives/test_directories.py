"""Unpacked archives go when neither a model, nor the snapshot, nor a daemon that is being replaced uses them."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from tsctl.daemon.models.archives.opening import Directories
from tsctl.daemon.models.archives.unpack import Limits


def made(folder: Path, *names: str) -> tuple[Directories, list[Path]]:
    directories = Directories(folder, Limits(1000, 10), lambda directory: False)
    found = [directories.named(name) for name in names]
    for directory in found:
        directory.mkdir()
        directories.use(directory)
    return directories, found


def test_a_directory_goes_with_its_last_user(tmp_path: Path) -> None:
    directories, [directory] = made(tmp_path, "a")
    directories.use(directory)

    directories.release(directory)
    assert directory.exists()
    directories.release(directory)
    assert not directory.exists()


def test_what_is_released_while_another_daemon_may_use_it_goes_when_that_has_ended(tmp_path: Path) -> None:
    directories, [unused, used_again] = made(tmp_path, "a", "b")
    directories.share()
    directories.release(unused)
    directories.release(used_again)
    directories.use(used_again)
    assert unused.exists()

    directories.own()

    assert (unused.exists(), used_again.exists()) == (False, True)


def test_a_daemon_without_another_one_removes_at_once_again(tmp_path: Path) -> None:
    directories, [directory] = made(tmp_path, "a")
    directories.share()
    directories.own()

    directories.release(directory)

    assert not directory.exists()


def test_what_the_other_daemon_has_left_goes_when_it_has_ended(tmp_path: Path) -> None:
    directories, [used] = made(tmp_path, "a")
    left = tmp_path / "b"
    left.mkdir()
    directories.share()

    directories.own()

    assert (left.exists(), used.exists()) == (False, True)


async def test_the_files_are_removed_in_a_thread_while_requests_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, remove = list[threading.Thread](), shutil.rmtree

    def noted(*arguments: Any, **options: Any) -> None:
        threads.append(threading.current_thread())
        remove(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", noted)
    folder = tmp_path / "models"
    folder.mkdir()
    directories, [directory] = made(folder, "a")
    (directory / "file").touch()

    directories.release(directory)
    assert not directory.exists()
    await directories.removed()

    assert threads and threading.main_thread() not in threads
    assert os.listdir(tmp_path) == ["models"]


def test_what_a_crash_left_of_a_removal_goes_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "removed-1" / "a").mkdir(parents=True)
    directories = Directories(tmp_path / "models", Limits(1000, 10), lambda directory: False)

    directories.clean()

    assert os.listdir(tmp_path) == ["models"]
