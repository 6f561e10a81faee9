"""A later download goes on from the part that an earlier one has written, if the store still has the same content."""

from pathlib import Path

import pytest

from tests.extensions.object_stores.fetch.test_reading import CONTENT, Source
from tsctl.daemon.extensions.object_stores.fetch.reading import ATTEMPTS, LEAST_PIECE, download
from tsctl.daemon.extensions.object_stores.fetch.stores import FetchError

ENDS: list[Exception | int] = [LEAST_PIECE, *[OSError("cut")] * ATTEMPTS]  # after the first piece


def run(source: Source, folder: Path, *, digest: bool = True) -> list[tuple[int, int]]:
    """Download into `folder/data`; return the progress."""
    told: list[tuple[int, int]] = []
    found = source.found() if digest else source.found()._replace(digest=None)
    note, data = (lambda *event: told.append(event)), folder / "data"
    download(found, data, len(CONTENT), note, folder / "tag", lambda seconds: None)
    return told


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Return the folder of a download that was cut behind its first piece."""
    with pytest.raises(OSError, match="cut"):
        run(Source(*ENDS), tmp_path)
    assert ((tmp_path / "data").stat().st_size, (tmp_path / "tag").read_text()) == (LEAST_PIECE, "a")
    return tmp_path


@pytest.mark.parametrize("digest", [True, False], ids=["with a digest", "without"])
def test_only_the_rest_is_asked_for(part: Path, digest: bool) -> None:
    source = Source()

    told = run(source, part, digest=digest)

    assert (part / "data").read_bytes() == CONTENT
    assert min(start for start, _ in source.asked) == LEAST_PIECE
    assert told[0] == (LEAST_PIECE, len(CONTENT))


def test_another_content_begins_anew(part: Path) -> None:
    source = Source(tags=("b", "b"))

    run(source, part)

    assert source.asked[0][0] == 0 and (part / "data").read_bytes() == CONTENT


def test_a_whole_part_is_only_checked(part: Path) -> None:
    run(Source(), part)
    source = Source()

    run(source, part)

    assert source.asked == [] and (part / "data").read_bytes() == CONTENT


def test_a_part_with_other_bytes_is_refused_once_and_then_gone(part: Path) -> None:
    (part / "data").write_bytes(bytes(LEAST_PIECE))

    with pytest.raises(FetchError, match="the sha256 is"):
        run(Source(), part)
    assert not (part / "tag").exists()
    run(Source(), part)

    assert (part / "data").read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_object_is_not_gone_on_with(part: Path) -> None:
    (part / "data").write_bytes(CONTENT + b"more")

    run(Source(), part, digest=False)

    assert (part / "data").read_bytes() == CONTENT


def test_a_content_that_the_store_has_no_mark_of_is_not_gone_on_with(tmp_path: Path) -> None:
    size = f" {len(CONTENT)}"
    with pytest.raises(OSError, match="cut"):
        run(Source(*ENDS, tags=(size, size)), tmp_path)

    assert not (tmp_path / "tag").exists()


def test_an_object_that_is_replaced_meanwhile_leaves_no_part(part: Path) -> None:
    with pytest.raises(FetchError, match="replaced"):
        run(Source(tags=("a", "b")), part)

    assert not (part / "tag").exists()
