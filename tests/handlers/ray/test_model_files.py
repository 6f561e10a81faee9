"""A model's directory on its way to a node: named by its content, unpacked once."""

import os
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tsctl.handlers.ray.node.model_files import KEPT_FOR, Copies, FilesChanged, cache_dir, digest_of, pieces_of

FILES = {"handler.py": b"def handle(): ...", "weights/net.pt": bytes(range(256)) * 1000, "ünïcode.txt": b""}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_files(tmp_path / "model", FILES)


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path / "cache")


def content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", [1000, 10_240, 10**9])
def test_a_copy_has_the_same_content(model: Path, copies: Copies, size: int) -> None:
    pieces = list(pieces_of(model, digest_of(model), size))

    copy = copies.unpack("d", iter(pieces))

    assert content(copy) == FILES
    assert digest_of(copy) == digest_of(model)
    assert all(len(piece) == size for piece in pieces[:-1])


def test_the_name_depends_on_names_modes_and_bytes_alone(model: Path) -> None:
    name = digest_of(model)
    seen = {name}

    os.utime(model / "handler.py", (1, 1))
    write_files(model, {"__pycache__/handler.pyc": b"bytecode"})
    assert digest_of(model) == name

    (model / "handler.py").chmod(0o755)
    seen.add(digest_of(model))
    write_files(model, {"handler.py": b"def handle(): pass"})
    seen.add(digest_of(model))
    (model / "handler.py").rename(model / "other.py")
    seen.add(digest_of(model))
    assert len(seen) == 4


def overwritten(model: Path) -> None:
    (model / "weights/net.pt").write_bytes(bytes(256_000))  # of the same size


def grown(model: Path) -> None:
    with (model / "weights/net.pt").open("ab") as file:
        file.write(b"more")


def added(model: Path) -> None:
    (model / "more").touch()


def made_executable(model: Path) -> None:
    (model / "handler.py").chmod(0o755)


@pytest.mark.parametrize("change", [overwritten, grown, added, made_executable])
def test_files_that_change_after_they_were_named_are_not_kept_under_that_name(
    change: Callable[[Path], None], model: Path, copies: Copies
) -> None:
    digest = digest_of(model)
    change(model)

    with pytest.raises(FilesChanged, match="model was written to while it was sent"):
        copies.unpack(digest, pieces_of(model, digest))

    assert copies.find(digest) is None
    assert content(copies.unpack(digest_of(model), pieces_of(model, digest_of(model)))) == content(model)


def test_a_model_that_is_there_is_not_asked_for_again(model: Path, copies: Copies, tmp_path: Path) -> None:
    assert copies.find("d") is None
    made = copies.unpack("d", pieces_of(model, digest_of(model)))

    def never() -> Iterator[bytes]:
        raise AssertionError("fetched again")
        yield b""

    assert Copies(tmp_path / "cache").find("d") == made
    assert Copies(tmp_path / "cache").unpack("d", never()) == made


def test_pieces_that_break_off_leave_no_copy(model: Path, copies: Copies, tmp_path: Path) -> None:
    pieces = list(pieces_of(model, digest_of(model), 1000))

    with pytest.raises(tarfile.TarError):
        copies.unpack("d", iter(pieces[:-20]))

    assert copies.find("d") is None
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"d.lock", "d.making.lock"}


def test_an_archive_cannot_write_outside_its_copy(copies: Copies, tmp_path: Path) -> None:
    packed = tmp_path / "evil.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(__file__, "../outside.py")

    with pytest.raises(tarfile.TarError):
        copies.unpack("d", iter([packed.read_bytes()]))

    assert not (tmp_path / "outside.py").exists()


def test_an_old_copy_that_no_process_uses_makes_room(model: Path, copies: Copies, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    used = copies.unpack("used", pieces_of(model, digest_of(model)))
    unused = write_files(cache / "unused", FILES)
    recent = write_files(cache / "recent", FILES)
    draft = write_files(cache / ".unpacking-x", FILES)
    long_ago = time.time() - KEPT_FOR - 10
    for each in (used, unused, draft):
        os.utime(each, (long_ago, long_ago))

    Copies(cache).unpack("new", pieces_of(model, digest_of(model)))

    assert [each.exists() for each in (used, recent, unused, draft)] == [True, True, False, False]


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(PermissionError, match="TSCTL_RAY_CACHE"):
        Copies(tmp_path / "open")


def test_the_place_of_copies_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TSCTL_RAY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_dir() == Path("/x/tsctl/models")

    monkeypatch.setenv("TSCTL_RAY_CACHE", "/disk/models")
    assert cache_dir() == Path("/disk/models")
