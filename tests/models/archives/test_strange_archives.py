"""Archives that are odd, cut, damaged or made at random: what is unpacked is inside, bounded, whole, and plain."""

import contextlib
import gzip
import os
import stat
import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.archives import hostile
from tests.models.archives.hostile import OUTSIDE, tar_of, zip_of
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives.manifest import read_manifest
from tsctl.daemon.models.archives.unpack import Limits, unpack

LIMITS = Limits(total_bytes=1000, files=10)
MEMBERS = (("a.txt", b"hello"), ("b/c.txt", b"there"))


def unpacked(root: Path, data: bytes, limits: Limits = LIMITS) -> dict[str, bytes] | None:
    """Unpack an archive; give its files, None if it is refused. Checks what must hold in any case."""
    archive, models = root / "m.mar", root / "models"
    models.mkdir(exist_ok=True)
    archive.write_bytes(data)
    target = None
    with contextlib.suppress(InvalidModel):
        target = unpack(archive, models, limits)

    assert set(root.iterdir()) == {archive, models} | ({root / "sums"} if target else set())
    assert list(models.iterdir()) == ([target] if target else [])
    assert not Path(OUTSIDE).exists()
    if target is None:
        return None
    inside = list(target.rglob("*"))
    assert len(inside) <= limits.files
    for path in inside:
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode)
        assert not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX)
    held = {path.relative_to(target).as_posix(): path.read_bytes() for path in inside if path.is_file()}
    assert sum(map(len, held.values())) <= limits.total_bytes
    return held


def tar_with_mode(mode: int) -> bytes:
    info = tarfile.TarInfo("a")
    info.mode = mode
    return hostile.tar_of_raw(info.tobuf(tarfile.GNU_FORMAT))


HARMLESS: dict[str, tuple[Callable[[], bytes], dict[str, bytes]]] = {
    "an empty zip": (zip_of, {}),
    "an empty tar": (tar_of, {}),
    "a zip with a drive letter": (lambda: zip_of(("C:/a", b"x")), {"C:/a": b"x"}),
    "a tar with a drive letter": (lambda: tar_of(("C:a", b"x")), {"C:a": b"x"}),
    "a zip with setuid": (lambda: zip_of(("a", b"x"), mode=0o104755), {"a": b"x"}),
    "a tar with setuid, setgid and sticky": (lambda: tar_with_mode(0o7777), {"a": b""}),
    "a tar that may not be read": (lambda: tar_with_mode(0), {"a": b""}),
    "a zip with names in two cases": (lambda: zip_of(("a", b"x"), ("A", b"y")), {"a": b"x", "A": b"y"}),
    "a tar with names in two cases": (lambda: tar_of(("a", b"x"), ("A", b"y")), {"a": b"x", "A": b"y"}),
    "a zip within a zip": (lambda: zip_of(("a.zip", zip_of(("../evil", b"")))), {"a.zip": zip_of(("../evil", b""))}),
    "a zip with junk after it": (lambda: zip_of(*MEMBERS) + b"junk", dict(MEMBERS)),
    "a zip after a zip": (lambda: zip_of(("../evil", b"x")) + zip_of(*MEMBERS), dict(MEMBERS)),
    "a zip of 64 bits": (lambda: hostile.zip64(b"x" * 500), {"a.txt": b"x" * 500}),
    "a zip that says less of 64 bits": (lambda: hostile.zip64(b"x" * 500, 500), {"a.txt": b"x" * 500}),
    "a zip with one directory many times": (lambda: zip_of(*[("a/", b"")] * 3), {}),
    "a tar with a directory over itself": (lambda: tar_of(("a", b""), ("./a", b""), kind=tarfile.DIRTYPE), {}),
    "a tar with a long name": (lambda: tar_of(("x" * 200, b"y")), {"x" * 200: b"y"}),
    "a tar with a size that is no number": (lambda: hostile.tar_of_pax(size="x"), {"a": b""}),
    "a tar with zeros after it": (lambda: tar_of(*MEMBERS) + bytes(100), dict(MEMBERS)),
    "a tar in two parts of gzip": (
        lambda: gzip.compress(hostile.tar_header("a")) + gzip.compress(bytes(1024)), {"a": b""}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_only_strange_is_unpacked_plainly(what: str, tmp_path: Path) -> None:
    build, expected = HARMLESS[what]

    assert unpacked(tmp_path, build()) == expected


def test_a_tar_with_a_size_below_nothing_is_refused_or_unpacked_plainly(tmp_path: Path) -> None:
    found = unpacked(tmp_path, hostile.tar_of_pax(size="-5"))

    assert found in (None, {"a": b""})  # newer versions of tarfile refuse such a size


@pytest.mark.parametrize("data", [zip_of(*MEMBERS), tar_of(*MEMBERS)], ids=["zip", "tar"])
def test_cut_anywhere_it_is_refused(data: bytes, tmp_path: Path) -> None:
    for length in range(len(data)):
        assert unpacked(tmp_path, data[:length]) is None, length


@pytest.mark.parametrize("data", [zip_of(*MEMBERS), tar_of(*MEMBERS)], ids=["zip", "tar"])
def test_a_flipped_bit_never_changes_what_a_file_holds(data: bytes, tmp_path: Path) -> None:
    contents = {b"hello", b"there"}
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        root = tmp_path / str(place)
        root.mkdir()
        held = unpacked(root, bytes(damaged))
        assert held is None or set(held.values()) <= contents, place


@pytest.mark.parametrize(
    "build", [hostile.zip_of_a_million, hostile.tar_of_a_million, lambda: hostile.tar_of_digits(1_000_000)]
)
def test_a_refusal_costs_little_memory(build: Callable[[], bytes], tmp_path: Path) -> None:
    data = build()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert unpacked(tmp_path, data) is None
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most - before < 8 * 1024**2


def test_as_deep_as_may_be_it_can_be_removed_again(tmp_path: Path) -> None:
    deep = "a/" * 62
    held = unpacked(tmp_path, tar_of((f"{deep}f", b"x")), Limits(1000, 100))

    assert held == {f"{deep}f": b"x"}


def test_a_manifest_that_is_a_directory_is_none(tmp_path: Path) -> None:
    (tmp_path / "MAR-INF" / "MANIFEST.json").mkdir(parents=True)

    with pytest.raises(InvalidModel) as caught:
        read_manifest(tmp_path, model_name="m", handler="")

    assert "MANIFEST.json" in str(caught.value)


PARTS = st.sampled_from(
    ["a", "b", "A", ".", "..", "", "a b", "C:", "\\", "a\\b", "ü", "x" * 300, "\0", "~", "-rf", "*"]
)
NAME = st.lists(PARTS, min_size=1, max_size=5).map("/".join) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20
)
MEMBER = st.tuples(NAME, st.binary(max_size=300))
KINDS = [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"Z"]


@given(members=st.lists(MEMBER, max_size=8), kind=st.sampled_from(KINDS), target=NAME, pax=st.booleans())
def test_any_tar_is_unpacked_inside_or_refused(
    members: list[tuple[str, bytes]], kind: bytes, target: str, pax: bool
) -> None:
    headers = []
    for number, (name, content) in enumerate(members):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = (kind, target) if number == len(members) // 2 else (tarfile.REGTYPE, "")
        info.size = len(content) if info.isreg() else 0
        info.mode = 0o7777
        headers.append(
            info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)
            + (content + bytes(-len(content) % 512) if info.size else b"")
        )

    with tempfile.TemporaryDirectory() as root:
        unpacked(Path(root), hostile.tar_of_raw(*headers))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@given(members=st.lists(MEMBER, max_size=8), mode=st.sampled_from([0, 0o104777, 0o120777, 0o040755, 0o010666]))
def test_any_zip_is_unpacked_inside_or_refused(members: list[tuple[str, bytes]], mode: int) -> None:
    data = zip_of(*((name.replace("\0", "\x7f"), content) for name, content in members), mode=mode)

    with tempfile.TemporaryDirectory() as root:
        unpacked(Path(root), data.replace(b"\x7f", b"\0"))


@given(
    st.sampled_from([zip_of(*MEMBERS), tar_of(*MEMBERS), zip_of(*MEMBERS, method=zipfile.ZIP_STORED)]),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=4), st.integers(0, 8)), min_size=1, max_size=4),
)
def test_any_damage_is_refused_or_harmless(data: bytes, changes: list[tuple[int, bytes, int]]) -> None:
    for place, put, gone in changes:
        place %= len(data) or 1
        data = data[:place] + put + data[place + gone :]

    with tempfile.TemporaryDirectory() as root:
        unpacked(Path(root), data)


@pytest.mark.filterwarnings("ignore:Overlapped entries")
def test_no_file_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    for build in hostile.HOSTILE.values():
        unpacked(tmp_path, build())

    assert len(os.listdir("/proc/self/fd")) == before
