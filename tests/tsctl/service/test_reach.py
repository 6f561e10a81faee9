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


@pytest.mark.parametrize(
    ("folder", "mode", "account", "closed"),
    [
        pytest.param(0o755, 0o644, Account(), None, id="what all can read is open to a dynamic user"),
        pytest.param(0o700, 0o644, Account(), "folder", id="the first closed directory is named"),
        pytest.param(0o700, 0o644, Account(OWNER), None, id="but for its owner"),
        pytest.param(0o755, 0o600, Account(STRANGER), "file", id="a file without the right to read"),
    ],
)
def test_a_path_is_closed(file: Path, folder: int, mode: int, account: Account, closed: str | None) -> None:
    file.parent.chmod(folder)
    file.chmod(mode)
    link = file.parent.parent / "link"
    link.symlink_to(file)

    for path in (file, link):
        assert closed_at(path, account) == {None: None, "folder": file.parent, "file": path}[closed]


def test_a_group_opens_what_its_bits_say(file: Path) -> None:
    file.chmod(0o640)
    group = file.stat().st_gid

    assert closed_at(file, Account(STRANGER, frozenset({group}))) is None
    assert closed_at(file, Account(STRANGER, frozenset({group + 1}))) == file


def test_an_account_has_the_groups_of_its_user() -> None:
    assert account_of("root").uid == 0
    assert 0 in account_of("root").groups
    assert account_of(None) == Account(None)


def test_a_user_that_does_not_exist_is_named_with_the_remedy() -> None:
    with pytest.raises(CliError, match="there is no user `nosuchuser`") as raised:
        account_of("nosuchuser")

    assert raised.value.hint == "make one: `useradd --system nosuchuser`"
