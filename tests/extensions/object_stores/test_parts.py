"""What an interrupted download leaves is found by the next one of the same URL, by one only, and is bounded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tsctl.daemon.extensions.object_stores.parts import LONGEST_KEPT, MOST, fetch_rest, recover

URL = "s3://b/m.mar"


class Interrupted(Exception):
    """The download of a test ends early."""


def interrupt(folder: Path, url: str = URL, content: str = "half", at: float = 0.0) -> None:
    """Download a part, at a time."""

    def fetch(data: Path, tag: Path) -> bool:
        tag.write_text("a")
        data.write_text(content)
        os.utime(data, (at, at))
        raise Interrupted

    with pytest.raises(Interrupted):
        fetch_rest(url, folder / "m.mar", folder, fetch, lambda: at)


def found(folder: Path, url: str = URL, at: float = 0.0) -> str:
    """Return the part that a download of the URL gets, and keep it; empty for none."""
    seen = ""

    def fetch(data: Path, tag: Path) -> bool:
        nonlocal seen
        seen = data.read_text() if tag.exists() else ""
        return False

    fetch_rest(url, folder / "m.mar", folder, fetch, lambda: at)
    return seen


def finish(more: str) -> Callable[[Path, Path], bool]:
    def fetch(data: Path, tag: Path) -> bool:
        with data.open("a") as written:
            written.write(more)
        return True

    return fetch


def test_the_next_download_of_the_url_goes_on_and_leaves_the_archive_alone(tmp_path: Path) -> None:
    interrupt(tmp_path)

    fetch_rest(URL, tmp_path / "m.mar", tmp_path, finish(" and half"), lambda: 0.0)

    assert (tmp_path / "m.mar").read_text() == "half and half"
    assert os.listdir(tmp_path) == ["m.mar"]


def test_another_url_has_another_part(tmp_path: Path) -> None:
    interrupt(tmp_path)

    assert found(tmp_path, "s3://b/other.mar") == ""
    assert found(tmp_path) == "half"


def test_a_download_that_is_given_up_keeps_its_part(tmp_path: Path) -> None:
    interrupt(tmp_path)

    assert [found(tmp_path), found(tmp_path)] == ["half", "half"]


def test_two_downloads_of_a_url_do_not_share_a_part(tmp_path: Path) -> None:
    interrupt(tmp_path)
    seen: list[str] = []

    def fetch(data: Path, tag: Path) -> bool:
        seen.append(found(tmp_path))  # the second one
        return False

    fetch_rest(URL, tmp_path / "m.mar", tmp_path, fetch, lambda: 0.0)

    assert seen == [""]
    assert found(tmp_path) == "half"


def test_a_download_without_content_or_without_a_tag_leaves_nothing(tmp_path: Path) -> None:
    interrupt(tmp_path, content="")
    fetch_rest(URL, tmp_path / "m.mar", tmp_path, lambda data, tag: bool(data.write_text("x")) and False)

    assert os.listdir(tmp_path) == []


def test_a_part_is_kept_for_a_day(tmp_path: Path) -> None:
    interrupt(tmp_path, at=1000.0)

    assert found(tmp_path, at=1000.0 + LONGEST_KEPT) == "half"
    assert found(tmp_path, at=1001.0 + LONGEST_KEPT) == ""
    assert os.listdir(tmp_path) == []


def test_only_the_newest_parts_are_kept(tmp_path: Path) -> None:
    urls = [f"s3://b/{index}.mar" for index in range(MOST + 2)]
    for index, url in enumerate(urls):
        interrupt(tmp_path, url, at=float(index))

    assert len(os.listdir(tmp_path)) == MOST
    assert [bool(found(tmp_path, url)) for url in urls] == [False, False, *[True] * MOST]


def test_after_a_restart_of_the_daemon_parts_are_there_and_those_without_a_tag_are_not(tmp_path: Path) -> None:
    interrupt(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.rename(tmp_path / f"unfinished-{kept.name.removeprefix('part-')}-x1")  # the daemon was killed meanwhile
    (tmp_path / "unfinished-0-x2").mkdir()
    (tmp_path / "unfinished-0-x2" / "data").write_text("y")

    recover(tmp_path, lambda: 0.0)

    assert [each.name for each in tmp_path.iterdir()] == [kept.name]
    assert found(tmp_path) == "half"


def test_a_state_directory_without_downloads_has_nothing_to_recover(tmp_path: Path) -> None:
    recover(tmp_path / "downloads")

    assert os.listdir(tmp_path) == []
