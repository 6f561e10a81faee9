"""The name of a model is read from its archive's manifest, however that is packed; what cannot be read has none."""

from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.build import make_config
from tests.models.archives.hostile import HOSTILE, tar_of
from tsctl.daemon.lifecycle.early import wants_torch
from tsctl.daemon.marfile import FORMATS, Packing, write_archive
from tsctl.daemon.models.archives import named
from tsctl.daemon.models.archives.named import model_name_in

MANIFEST_OF_M = b'{"model": {"modelName": "m"}}'


def packed(folder: Path, form: str) -> Path:
    (folder / "handler.py").write_text("def handle(data, context): return data\n")
    return write_archive(Packing(model_name="scorer", version="1.0", handler=str(folder / "handler.py")), folder,
                         archive_format=form)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_tells_its_name(tmp_path: Path, form: str) -> None:
    assert model_name_in(packed(tmp_path, form)) == "scorer"
    assert model_name_in(write_files(tmp_path / "m", model_files("scorer"))) == "scorer"


@pytest.mark.filterwarnings("ignore:Overlapped entries", "ignore:Duplicate name")
@pytest.mark.parametrize("what", [*HOSTILE, b"", b"no zip", b"PK\x03\x04 cut"])
def test_no_hostile_archive_stops_a_start_and_none_has_a_name(what: str | bytes, tmp_path: Path) -> None:
    (tmp_path / "m.mar").write_bytes(what if isinstance(what, bytes) else HOSTILE[what]())

    assert model_name_in(tmp_path / "m.mar") is None
    assert model_name_in(tmp_path / "nowhere") is None


@pytest.mark.parametrize("length", range(0, 400, 19))
@pytest.mark.parametrize("form", ["default", "tgz"])
def test_nor_does_a_damaged_one(form: str, length: int, tmp_path: Path) -> None:
    archive = packed(tmp_path, form)
    data = bytearray(archive.read_bytes())
    data[length % len(data)] ^= 0xFF
    archive.write_bytes(data)

    model_name_in(archive)
    wants_torch(make_config(tmp_path, model_store=str(tmp_path), models="ALL"), replacing=False)


def test_a_manifest_behind_a_terabyte_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "_MOST_UNPACKED", 4096)
    (tmp_path / "near.tgz").write_bytes(tar_of(("a", bytes(1000)), ("MAR-INF/MANIFEST.json", MANIFEST_OF_M)))
    (tmp_path / "far.tgz").write_bytes(tar_of(("a", bytes(9000)), ("MAR-INF/MANIFEST.json", MANIFEST_OF_M)))

    assert (model_name_in(tmp_path / "near.tgz"), model_name_in(tmp_path / "far.tgz")) == ("m", None)


@pytest.mark.parametrize("manifest", [b"[" * 100_000, b"{", b"[]", b'{"model": {}}', b'{"model": {"modelName": 7}}'])
def test_a_manifest_without_a_name_has_none(tmp_path: Path, manifest: bytes) -> None:
    assert model_name_in(write_mar(tmp_path / "m.mar", {"MAR-INF/MANIFEST.json": manifest})) is None
