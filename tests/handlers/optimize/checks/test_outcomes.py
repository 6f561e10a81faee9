"""The outcomes of checks are found again: by archive, machine, and way to run the model."""

import os
from pathlib import Path

import pytest

from tsctl.handlers import wire
from tsctl.handlers.optimize.checks.archive import archive_of
from tsctl.handlers.optimize.checks.outcomes import VARIABLE, entry_of

FACTS = {"archive": "a" * 64, "threads": 2, "wanted": {"fold": False}}
FOUND = [wire.Optimized("fold", True, 1e-7, 0.5)]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "trials"))
    return tmp_path / "trials"


def test_outcomes_are_found_with_the_same_facts_only_and_private_whatever_the_umask(directory: Path) -> None:
    before = os.umask(0)
    try:
        with entry_of(FACTS) as entry:
            assert entry.outcomes is None
            entry.keep(FOUND)
    finally:
        os.umask(before)

    (file,) = directory.iterdir()
    assert (file.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o600, 0o700)
    with entry_of(FACTS) as again, entry_of(FACTS | {"threads": 1}) as other:
        assert again.outcomes == FOUND
        assert other.outcomes is None


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"facts": {}, "outcomes": []}'])
def test_a_damaged_file_is_as_if_there_were_none_and_is_written_anew(damage: bytes, directory: Path) -> None:
    with entry_of(FACTS) as entry:
        entry.keep(FOUND)
    (file,) = directory.iterdir()
    file.write_bytes(damage)

    with entry_of(FACTS) as entry:
        assert entry.outcomes is None
        entry.keep(FOUND)
    with entry_of(FACTS) as entry:
        assert entry.outcomes == FOUND


def test_without_a_directory_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for value in ("", str(tmp_path / "file" / "below")):
        monkeypatch.setenv(VARIABLE, value)
        for _ in range(2):
            with entry_of(FACTS) as entry:
                assert entry.outcomes is None
                entry.keep(FOUND)


def test_files_that_are_served_in_place_are_known_by_their_marks(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("x")
    before = archive_of(tmp_path)
    (tmp_path / "__pycache__").mkdir()

    assert archive_of(tmp_path) == before
    (tmp_path / "net.py").write_text("xy")
    assert archive_of(tmp_path) != before
    unpacked = "b" * 64  # known by its content, wherever it lies
    assert archive_of(tmp_path / unpacked) == archive_of(tmp_path / "elsewhere" / unpacked / "net") == unpacked
