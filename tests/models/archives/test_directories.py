"""Unpacked archives go when neither a model, nor the snapshot, nor a daemon that is being replaced uses them."""

from pathlib import Path

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
