"""A path is closed where the mode bits say so, for whom they say so."""

import os
from pathlib import Path

import pytest

from tsctl.errors import CliError
from tsctl.service.plan import Account, account_of, closed_at

OWNER, STRANGER = os.getuid(), 54321


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Make a file that all can read, but for the directories above."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == OWNER and "pytest-of" in str(folder):
            folder.chmod(0o755)
    made = tmp_path / "folder" / "file"
    made.parent.mkdir(mode=0o755)
    made.touch(mode=0o644)
    return made


def test_what_all_can_read_is_open_to_a_dynamic_user(file: Path) -> None:
    assert closed_at(file, Account()) is None


def test_the_first_closed_directory_is_named(file: Path) -> None:
    file.parent.chmod(0o700)

    assert closed_at(file, Account()) == file.parent
    assert closed_at(file, Account(OWNER)) is None


def test_a_file_without_the_right_to_read_is_closed(file: Path) -> None:
    file.chmod(0o600)

    assert closed_at(file, Account(STRANGER)) == file


def test_a_group_opens_what_its_bits_say(file: Path) -> None:
    file.chmod(0o640)
    group = file.stat().st_gid

    assert closed_at(file, Account(STRANGER, frozenset({group}))) is None
    assert closed_at(file, Account(STRANGER, frozenset({group + 1}))) == file


def test_a_link_is_followed(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    file.parent.chmod(0o700)

    assert closed_at(link, Account()) == file.parent


def test_an_account_has_the_groups_of_its_user() -> None:
    assert account_of("root").uid == 0
    assert 0 in account_of("root").groups
    assert account_of(None) == Account(None)


def test_a_user_that_does_not_exist_is_named_with_the_remedy() -> None:
    with pytest.raises(CliError, match="there is no user `nosuchuser`") as raised:
        account_of("nosuchuser")

    assert raised.value.hint == "make one: `useradd --system nosuchuser`"
