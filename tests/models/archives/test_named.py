"""The name of a model is read from its archive's manifest, however that is packed; what cannot be read has none."""

from pathlib import Path

import pytest

from daemon.marfile import FORMATS, Packing, write_archive
from daemon.models.archives.named import model_name_in
from tests.kit.archives import model_files, write_files, write_mar


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_tells_its_name(tmp_path: Path, form: str) -> None:
    (tmp_path / "handler.py").write_text("def handle(data, context): return data\n")
    packing = Packing(model_name="scorer", version="1.0", handler=str(tmp_path / "handler.py"))

    archive = write_archive(packing, tmp_path, archive_format=form)

    assert model_name_in(archive) == "scorer"


def test_a_directory_tells_its_name(tmp_path: Path) -> None:
    assert model_name_in(write_files(tmp_path / "m", model_files("scorer"))) == "scorer"


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 cut"])
def test_what_is_no_archive_has_no_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.mar").write_bytes(content)

    assert model_name_in(tmp_path / "m.mar") is None
    assert model_name_in(tmp_path / "nowhere") is None


@pytest.mark.parametrize("manifest", [b"{", b"[]", b'{"model": {}}', b'{"model": {"modelName": 7}}'])
def test_a_manifest_without_a_name_has_none(tmp_path: Path, manifest: bytes) -> None:
    assert model_name_in(write_mar(tmp_path / "m.mar", {"MAR-INF/MANIFEST.json": manifest})) is None
