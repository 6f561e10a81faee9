"""An unpacked archive holds the bytes that its name is the digest of, whoever writes to the archive meanwhile."""

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.models.archives.hostile import tar_of, zip_of
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives import unpack as unpacking
from tsctl.daemon.models.archives.digests import SteadyFile, holds_its_files, is_sealed, sums_of
from tsctl.daemon.models.archives.readers import Members, open_archive
from tsctl.daemon.models.archives.unpack import Limits, unpack

LIMITS = Limits(total_bytes=10**7, files=10)
NOISE = random.Random(7)
NAMES = ("a", "b", "c")
RIGHT = {name: NOISE.randbytes(300_000) for name in NAMES}  # three blocks each: none is held from the hash
WRONG = {name: NOISE.randbytes(300_000) for name in NAMES}
KINDS = pytest.mark.parametrize("build", [zip_of, tar_of])


def replaced(archive: Path, data: bytes) -> None:
    draft = archive.with_name("draft")
    draft.write_bytes(data)
    draft.replace(archive)


def overwritten(archive: Path, data: bytes) -> None:
    with archive.open("r+b") as file:
        file.write(data)
        file.truncate()


def emptied(archive: Path, data: bytes) -> None:
    os.truncate(archive, 0)


CHANGES = pytest.mark.parametrize("change", [replaced, overwritten, emptied])


def held(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def unpacked_right_or_refused(archive: Path, models: Path, progress: Callable[[int, int], None]) -> bool:
    """Unpack an archive that holds RIGHT at first; return whether that was refused."""
    right = hashlib.sha256(archive.read_bytes()).hexdigest()
    try:
        target = unpack(archive, models, LIMITS, progress, right)
    except InvalidModel as error:
        sentence = str(error)
    else:
        assert target.name == right and held(target) == RIGHT and holds_its_files(target)
        return False
    assert "was written to while it was read" in sentence
    assert list(models.iterdir()) == []
    return True


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


@KINDS
@CHANGES
def test_an_archive_that_changes_after_its_hash_is_not_unpacked_under_that_name(
    build: Callable[..., bytes],
    change: Callable[[Path, bytes], None],
    models: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive, wrong = models.parent / "m.mar", build(*WRONG.items())
    archive.write_bytes(build(*RIGHT.items()))

    @contextmanager
    def changed_first(*given: object) -> Iterator[tuple[int, Members]]:
        change(archive, wrong)
        with open_archive(*given) as opened:  # type: ignore[arg-type]
            yield opened

    monkeypatch.setattr(unpacking, "open_archive", changed_first)

    assert unpacked_right_or_refused(archive, models, lambda done, total: None) == (change is not replaced)


@KINDS
@CHANGES
@pytest.mark.parametrize("moment", range(3))
def test_nor_one_that_changes_between_two_files(
    build: Callable[..., bytes], change: Callable[[Path, bytes], None], moment: int, models: Path
) -> None:
    archive, wrong = models.parent / "m.mar", build(*WRONG.items())
    archive.write_bytes(build(*RIGHT.items()))
    calls = iter(range(3))

    def progress(done: int, total: int) -> None:
        if next(calls) == moment:
            change(archive, wrong)

    refused = unpacked_right_or_refused(archive, models, progress)

    assert refused == (change is not replaced and moment < 2) or build is tar_of  # a tar is read in larger pieces


@KINDS
def test_a_writer_who_restores_the_bytes_gets_no_other_ones_unpacked(
    build: Callable[..., bytes], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, right, wrong = models.parent / "m.mar", build(*RIGHT.items()), build(*WRONG.items())
    archive.write_bytes(right)

    @contextmanager
    def restored_after(*given: object) -> Iterator[tuple[int, Members]]:
        overwritten(archive, wrong)
        try:
            with open_archive(*given) as opened:  # type: ignore[arg-type]
                yield opened
        finally:
            overwritten(archive, right)

    monkeypatch.setattr(unpacking, "open_archive", restored_after)

    assert unpacked_right_or_refused(archive, models, lambda done, total: None)


def test_a_pipe_in_the_archives_place_is_refused_and_waited_for_by_nobody(models: Path) -> None:
    os.mkfifo(models.parent / "m.mar")

    with pytest.raises(InvalidModel, match=r"`m\.mar` cannot be read: not a file"):
        unpack(models.parent / "m.mar", models, LIMITS)


@pytest.mark.parametrize("size", [0, 1, 131_071, 131_072, 131_073, 400_000])
def test_a_steady_file_reads_as_the_file_does(size: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(data := NOISE.randbytes(size))

    with SteadyFile(file) as steady:
        assert (steady.size, steady.sha256) == (size, hashlib.sha256(data).hexdigest())
        assert steady.start() == data[:4]
        assert steady.read() == data and steady.read() == b""
        steady.seek(-min(size, 5), os.SEEK_END)
        assert steady.read() == data[-min(size, 5) :]
        steady.seek(size // 2)
        assert steady.read(10) == data[size // 2 :][:10]


def test_sums_are_what_sha256sum_writes(models: Path) -> None:
    archive = models.parent / "m.mar"
    archive.write_bytes(zip_of(("a", b"x"), ("b/c", b"y")))

    sums = sums_of(unpack(archive, models, LIMITS)).read_bytes()

    x, y = (hashlib.sha256(data).hexdigest().encode() for data in (b"x", b"y"))
    seal, _, entries = sums.partition(b"\0")
    assert seal.startswith(b"# ") and entries == b"%s  a\0%s  b/c\0" % (x, y)


def written_in_place(target: Path) -> None:
    status = (target / "b/c").stat()
    (target / "b/c").write_bytes(b"z")
    os.utime(target / "b/c", ns=(status.st_atime_ns, status.st_mtime_ns))


def put_in_its_place(target: Path) -> None:
    written_in_place(target)
    (target / "b/c").rename(target / "b/d")
    (target / "b/d").rename(target / "b/c")


def put_in_the_place_of_its_directory(target: Path) -> None:
    (target / "other").mkdir()
    (target / "other/c").write_bytes(b"z")
    (target / "b").rename(target / "former")
    (target / "other").rename(target / "b")


def removed(target: Path) -> None:
    (target / "b/c").unlink()


@pytest.mark.parametrize("write", [written_in_place, put_in_its_place, put_in_the_place_of_its_directory, removed])
def test_whatever_is_written_to_an_archives_file_breaks_the_seal(write: Callable[[Path], None], models: Path) -> None:
    archive = models.parent / "m.mar"
    archive.write_bytes(zip_of(("a", b"x"), ("b/c", b"y")))
    target = unpack(archive, models, LIMITS)
    assert is_sealed(target)

    write(target)

    assert not is_sealed(target)
    assert not holds_its_files(target)
    assert not is_sealed(target)


def test_a_file_whose_name_is_no_text_is_verified(models: Path) -> None:
    archive = models.parent / "m.mar"
    archive.write_bytes(tar_of(("a\udcff\n", b"x")))
    target = unpack(archive, models, LIMITS)
    assert holds_its_files(target)

    (target / "a\udcff\n").write_bytes(b"y")

    assert not holds_its_files(target)
