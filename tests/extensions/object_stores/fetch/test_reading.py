"""An object is read in pieces; a cut costs one piece, and what arrives is what the store says that it is."""

import hashlib
from collections.abc import Callable
from errno import ECONNRESET, EDQUOT, ENOSPC
from pathlib import Path

import pytest

from tsctl.daemon.extensions.object_stores.fetch import __main__ as program
from tsctl.daemon.extensions.object_stores.fetch.reading import ATTEMPTS, LEAST_PIECE, RemoteObject, download
from tsctl.daemon.extensions.object_stores.fetch.stores import Digest, FetchError

CONTENT = bytes(range(256)) * (4 * LEAST_PIECE // 256) + b"end"


class Source:
    """An object whose reads fail as told: each of `faults` is an error to raise, or a number of bytes to send."""

    def __init__(self, *faults: Exception | int, tags: tuple[str, ...] = ("a", "a")) -> None:
        self.faults = list(faults)
        self.tags = list(tags)
        self.asked: list[tuple[int, int]] = []

    def read(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        fault = self.faults.pop(0) if self.faults else end - start
        if isinstance(fault, Exception):
            raise fault
        return CONTENT[start : start + fault]

    def found(self, expected: str = hashlib.sha256(CONTENT).hexdigest()) -> RemoteObject:
        return RemoteObject(len(CONTENT), self.read, Digest(hashlib.sha256(), expected), lambda: self.tags.pop(0))


def run(
    source: Source,
    folder: Path,
    *,
    limit: int = len(CONTENT),
    sleep: Callable[[float], None] = lambda seconds: None,
    found: RemoteObject | None = None,
) -> list[tuple[int, int]]:
    """Download into `folder/file`; return the progress."""
    told: list[tuple[int, int]] = []
    download(found or source.found(), folder / "file", limit, lambda *event: told.append(event), folder / "tag", sleep)
    return told


def test_the_object_arrives_whole_and_progress_is_told(tmp_path: Path) -> None:
    told = run(Source(), tmp_path)

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert told[0] == (LEAST_PIECE, len(CONTENT)) and told[-1] == (len(CONTENT), len(CONTENT))


def test_after_a_cut_only_the_piece_is_asked_for_again(tmp_path: Path) -> None:
    pauses: list[float] = []
    source = Source(LEAST_PIECE, OSError("cut"), 0, LEAST_PIECE // 2)

    run(source, tmp_path, sleep=pauses.append)

    assert (tmp_path / "file").read_bytes() == CONTENT
    starts = [start for start, _ in source.asked]
    assert starts[:5] == [0, *[LEAST_PIECE] * 3, LEAST_PIECE * 3 // 2]
    assert pauses == [0.5, 1.0]


@pytest.mark.parametrize(
    ("source", "expected", "error", "told", "attempts"),
    [
        pytest.param(
            Source(*[0] * 99), None, FetchError, f"the download ended after 0 of {len(CONTENT)} bytes", ATTEMPTS,
            id="nothing more is sent"),
        pytest.param(Source(*[OSError("gone")] * 99), None, OSError, "gone", ATTEMPTS, id="an error stays"),
        pytest.param(
            Source(), "0" * 64, FetchError, r"the sha256 is [0-9a-f]{64}; expected 0000", None, id="another content"),
        pytest.param(
            Source(tags=("a", "b")), None, FetchError, "replaced while it was downloaded", None, id="replaced"),
    ],
)  # fmt: skip
def test_a_download_that_fails_says_why(
    source: Source, expected: str | None, error: type[Exception], told: str, attempts: int | None, tmp_path: Path
) -> None:
    with pytest.raises(error, match=told):
        run(source, tmp_path, found=source.found(expected) if expected else None)

    assert attempts in (None, len(source.asked))


@pytest.mark.parametrize("error", [PermissionError("no"), FileNotFoundError("no")])
def test_what_is_refused_is_not_asked_for_again(tmp_path: Path, error: Exception) -> None:
    source = Source(error)

    with pytest.raises(type(error)):
        run(source, tmp_path)

    assert len(source.asked) == 1


def test_an_object_above_the_limit_is_not_read(tmp_path: Path) -> None:
    source = Source()

    with pytest.raises(FetchError, match="the archive is larger than the 1000 bytes of `archive_bytes`"):
        run(source, tmp_path, limit=1000)

    assert source.asked == [] and not (tmp_path / "file").exists()


@pytest.mark.parametrize(("number", "full"), [(ENOSPC, ENOSPC), (EDQUOT, EDQUOT), (ECONNRESET, None)])
def test_a_full_disk_is_told_apart_from_a_store_that_fails(
    number: int, full: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(program, "open_object", lambda url: None)
    monkeypatch.setattr(program, "download", fail)

    told = program._download("s3://b/m.mar", tmp_path / "m.mar", 1, lambda done, total: None, tmp_path / "tag")

    assert told.get("full") == full and "no" in told["end"]
