"""Whatever an archive holds: nothing leaves the target, and the target appears whole or not at all."""

import zipfile
from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_files
from tests.models.archives.hostile import HOSTILE, OUTSIDE, tar_of, zip_of, zip_of_a_million
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives.unpack import Limits, model_root, safe_name, unpack

LIMITS = Limits(total_bytes=1000, files=10)


class Place:
    """A directory with an archive in it, and a directory to unpack to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.archive = root / "m.mar"
        self.models = root / "state" / "models"
        self.models.mkdir(parents=True)

    def unpack(self, data: bytes, limits: Limits = LIMITS) -> Path:
        self.archive.write_bytes(data)
        return unpack(self.archive, self.models, limits)

    @property
    def untouched(self) -> bool:
        """Nothing is there but what the test itself put there."""
        return set(self.root.rglob("*")) == {self.archive, self.models.parent, self.models}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.filterwarnings("ignore:Overlapped entries")  # zipfile since 3.13, before it is refused
@pytest.mark.parametrize("what", [*HOSTILE, "a name that is no text"])
def test_it_is_refused_and_leaves_nothing(what: str, place: Place) -> None:
    with pytest.raises(InvalidModel) as caught:
        place.unpack(HOSTILE[what]() if what in HOSTILE else tar_of(("../\udcff\n", b"x")))

    sentence = str(caught.value)
    assert sentence.isprintable() and sentence.endswith(".") and len(sentence) < 500
    assert str(place.root) not in sentence
    assert place.untouched
    assert not Path(OUTSIDE).exists()


def test_what_an_early_torch_saved_is_called_that(place: Place) -> None:
    with pytest.raises(InvalidModel, match=r"The archive `m.mar` is what `torch.save` wrote, .* ends in `.pth`"):
        place.unpack(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (11, "it has 11 files and directories, and at most 10 are allowed"),
        (1_000_000, "its directory has 47000000 bytes, and at most 1048576 are allowed"),
    ],
)
def test_members_are_counted_before_any_is_read(
    count: int, told: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = zip_of_a_million(count)
    monkeypatch.setattr(zipfile, "ZipInfo", lambda *_: pytest.fail("a member was read"))

    with pytest.raises(InvalidModel) as refused:
        place.unpack(data)

    assert str(refused.value) == f"The archive `m.mar` is too large: {told} (archive_files)."


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(zip_of(("a.txt", b"hello"), ("b/", b""), ("b/c.txt", b"there")), id="a zip"),
        pytest.param(tar_of(("a.txt", b"hello"), ("b/c.txt", b"there")), id="a gzipped tar"),
        pytest.param(tar_of(("./a.txt", b"hello"), ("./b/c.txt", b"there")), id="a tar of a dot"),
        pytest.param(zip_of(*((f"f{number}", bytes(100)) for number in range(10))), id="the limits themselves"),
        pytest.param(tar_of(("a\udcff", b"x")), id="a name that is no text"),
    ],
)
def test_an_honest_archive_is_unpacked(data: bytes, place: Place, request: pytest.FixtureRequest) -> None:
    target = place.unpack(data)

    assert target.parent == place.models
    held = {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    expected = {
        "the limits themselves": {f"f{number}": bytes(100) for number in range(10)},
        "a name that is no text": {"a\udcff": b"x"},
    }.get(request.node.callspec.id, {"a.txt": b"hello", "b/c.txt": b"there"})
    assert held == expected
    assert target.stat().st_mode & 0o777 == 0o700
    assert list(place.models.iterdir()) == [target], "the draft is gone"


def test_the_same_archive_is_unpacked_once(place: Place) -> None:
    data = zip_of(("a", b"x"))
    first = place.unpack(data)
    (first / "a").write_bytes(b"left alone")

    assert place.unpack(data) == first
    assert (first / "a").read_bytes() == b"left alone"
    assert place.unpack(zip_of(("a", b"y"))) != first


def test_who_was_slower_takes_what_the_quicker_one_unpacked(place: Place) -> None:
    data = zip_of(("a", b"x"))
    place.archive.write_bytes(data)

    def meanwhile(done: int, total: int) -> None:
        unpack(place.archive, place.models, LIMITS)

    target = unpack(place.archive, place.models, LIMITS, meanwhile)

    assert list(place.models.iterdir()) == [target]
    assert (target / "a").read_bytes() == b"x"


def test_progress_counts_what_is_unpacked(place: Place) -> None:
    place.archive.write_bytes(zip_of(("a", bytes(300)), ("b", bytes(200))))
    told: list[tuple[int, int]] = []

    unpack(place.archive, place.models, LIMITS, lambda done, total: told.append((done, total)))

    assert told == [(300, 500), (500, 500)]


@pytest.mark.parametrize("name", ["a", "a/b", "./a", "a b", "ü/ö", "..a", "a..", "x" * 255])
def test_a_safe_name(name: str) -> None:
    assert not safe_name(name).is_absolute()


OUTSIDE_NAMES = dict.fromkeys(["..", "../a", "a/..", "/a", "//a"], "write outside its directory")
ODD_NAMES = dict.fromkeys(["a\\b", "C:\\a", "a\0"], "a backslash or a zero byte")
LONG_NAMES = dict.fromkeys(["x" * 256, "ü" * 128, "/".join(["a" * 100] * 11), "a/" * 64 + "a"], "too long or too deep")


@pytest.mark.parametrize(("name", "reason"), (OUTSIDE_NAMES | ODD_NAMES | LONG_NAMES).items())
def test_an_unsafe_name(name: str, reason: str) -> None:
    with pytest.raises(InvalidModel, match=reason):
        safe_name(name)


def test_the_root_is_where_the_files_are(tmp_path: Path) -> None:
    flat = write_files(tmp_path / "flat", model_files())
    nested = write_files(tmp_path / "nested" / "m", model_files())
    (tmp_path / "nested" / ".hidden").touch()

    assert model_root(flat) == flat
    assert model_root(tmp_path / "nested") == nested
    only = write_files(tmp_path / "only", {"MAR-INF/MANIFEST.json": b"{}"})
    assert model_root(only) == only
