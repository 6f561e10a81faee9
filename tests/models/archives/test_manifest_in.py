"""A manifest is read from its archive, however that is packed, as the registration will read it; else there is none."""

import os
import random
import zipfile
from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.build import make_config
from tests.models.archives.hostile import HOSTILE, Build, tar_of, zip_of
from tsctl.daemon.lifecycle.first_template import wants_torch
from tsctl.daemon.marfile import FORMATS, MANIFEST, MOST_TEXT, Packing, write_archive
from tsctl.daemon.models.persistence import startup
from tsctl.daemon.models.persistence.startup import name_in

M = b'{"model": {"modelName": "m", "modelVersion": "2.0", "handler": "base_handler"}}'
OTHER = M.replace(b"2.0", b"9.0").replace(b'"m"', b'"other"')


def packed(folder: Path, form: str) -> Path:
    (folder / "handler.py").write_text("def handle(data, context): return data\n")
    return write_archive(Packing(model_name="scorer", version="1.0", handler=str(folder / "handler.py")), folder,
                         archive_format=form)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_tells_its_name(tmp_path: Path, form: str) -> None:
    assert name_in(packed(tmp_path, form)) == "scorer"
    assert name_in(write_files(tmp_path / "m", model_files("scorer"))) == "scorer"


@pytest.mark.filterwarnings("ignore:Overlapped entries", "ignore:Duplicate name")
@pytest.mark.parametrize("what", [*HOSTILE, b"", b"no zip", b"PK\x03\x04 cut"])
def test_no_hostile_archive_stops_a_start_and_none_has_a_name(what: str | bytes, tmp_path: Path) -> None:
    (tmp_path / "m.mar").write_bytes(what if isinstance(what, bytes) else HOSTILE[what]())

    assert name_in(tmp_path / "m.mar") is None
    assert name_in(tmp_path / "nowhere") is None


@pytest.mark.parametrize("length", range(0, 400, 19))
@pytest.mark.parametrize("form", ["default", "tgz"])
def test_nor_does_a_damaged_one(form: str, length: int, tmp_path: Path) -> None:
    archive = packed(tmp_path, form)
    data = bytearray(archive.read_bytes())
    data[length % len(data)] ^= 0xFF
    archive.write_bytes(data)

    name_in(archive)
    wants_torch(make_config(tmp_path, model_store=str(tmp_path), models="ALL"), replacing=False)


def test_a_manifest_behind_a_terabyte_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "_MOST_UNPACKED", 4096)
    (tmp_path / "near.tgz").write_bytes(tar_of(("a", bytes(1000)), (MANIFEST, M)))
    (tmp_path / "far.tgz").write_bytes(tar_of(("a", bytes(9000)), (MANIFEST, M)))

    assert (name_in(tmp_path / "near.tgz"), name_in(tmp_path / "far.tgz")) == ("m", None)


@pytest.mark.parametrize("manifest", [b"[" * 100_000, b"{", b"[]", b'{"model": {}}', b'{"model": {"modelName": 7}}'])
def test_a_manifest_without_a_name_has_none(tmp_path: Path, manifest: bytes) -> None:
    assert name_in(write_mar(tmp_path / "m.mar", {MANIFEST: manifest})) is None


def zip_of_broken_manifest() -> bytes:
    data = bytearray(zip_of((MANIFEST, M + random.Random(7).randbytes(500))))
    start = data.index(b"MANIFEST.json") + 60
    data[start : start + 60] = bytes(range(60))
    return bytes(data)


SEEN: dict[str, tuple[Build, str | None]] = {
    "at its root": (lambda: zip_of((MANIFEST, M)), "2.0"),
    "below one folder": (lambda: zip_of((f"m/{MANIFEST}", M)), "2.0"),
    "at its root, and not that of an archive within": (lambda: zip_of((f"m/{MANIFEST}", OTHER), (MANIFEST, M)), "2.0"),
    "of a tar, below one folder": (lambda: tar_of((f"./m/{MANIFEST}", M)), "2.0"),
    "as long as is read": (lambda: zip_of((MANIFEST, M.ljust(MOST_TEXT))), "2.0"),
    "that is longer": (lambda: zip_of((MANIFEST, M.ljust(MOST_TEXT + 1))), None),
    "that is deep": (lambda: zip_of((MANIFEST, b"[" * 200_000)), None),
    "that is a bomb": (lambda: zip_of((MANIFEST, bytes(50_000_000))), None),
    "of bzip2, which unpacks without a bound": (lambda: zip_of((MANIFEST, M), method=zipfile.ZIP_BZIP2), None),
    "of lzma": (lambda: zip_of((MANIFEST, M), method=zipfile.ZIP_LZMA), None),
    "of broken deflate": (zip_of_broken_manifest, None),
    "that is missing": (lambda: zip_of(("handler.py", b"")), None),
    "of another name": (lambda: tar_of((f"not{MANIFEST}", M)), None),
    "deeper than the registration looks": (lambda: tar_of((f"a/b/{MANIFEST}", M)), None),
    "of what is unpacked, a tar, and not of the zip after it": (
        lambda: tar_of((MANIFEST, M)) + zip_of((MANIFEST, OTHER)), "2.0"),
    "behind many files": (lambda: tar_of(*((f"f{number}", b"") for number in range(100)), (MANIFEST, M)), "2.0"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "version"), SEEN.values(), ids=SEEN.keys())
def test_a_start_sees_the_manifest_that_a_registration_reads(build: Build, version: str | None, tmp_path: Path) -> None:
    (tmp_path / "m.mar").write_bytes(build())

    assert name_in(tmp_path / "m.mar") == (None if version is None else "m")
    torch = wants_torch(make_config(tmp_path, model_store=str(tmp_path), models="m.mar"), replacing=False)
    assert torch is (version is not None and zipfile.is_zipfile(tmp_path / "m.mar"))


def test_no_code_is_unpacked_without_a_bound(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.mar", "w") as archive:
        archive.writestr(MANIFEST, M.replace(b"base_handler", b"handler.py"))
        archive.writestr("handler.py", b"import torch", zipfile.ZIP_BZIP2)

    assert not wants_torch(make_config(tmp_path, model_store=str(tmp_path), models="m.mar"), replacing=False)


def test_no_pipe_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "m" / "MAR-INF").mkdir(parents=True)
    os.mkfifo(tmp_path / "m" / MANIFEST)
    os.mkfifo(tmp_path / "m.mar")

    assert (name_in(tmp_path / "m"), name_in(tmp_path / "m.mar")) == (None, None)
    assert not wants_torch(make_config(tmp_path, model_store=str(tmp_path), models="m,m.mar"), replacing=False)
