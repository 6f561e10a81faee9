"""The models that a container holds, by the folders that KServe and SageMaker mount."""

from pathlib import Path

import pytest

from tsctl.container.host import mounted_models, sagemaker_models
from tsctl.daemon.marfile import MANIFEST
from tsctl.errors import CliError


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_archives_beside_a_store_that_is_not_there(tmp_path: Path) -> None:
    put(tmp_path, "b.mar", "a.mar", "config/config.properties", f"c/{MANIFEST}")

    assert mounted_models(tmp_path / "model-store", tmp_path) == "a.mar,b.mar,c"
    assert mounted_models(tmp_path / "config", tmp_path) == ""  # it is there
    assert mounted_models(Path("/nowhere/store"), tmp_path) == ""  # another place altogether


def test_sagemakers_folder_holds_archives(tmp_path: Path) -> None:
    put(tmp_path, "m.mar", "code/inference.py")

    assert sagemaker_models(tmp_path) == "m.mar"


def test_sagemakers_folder_is_an_unpacked_archive(tmp_path: Path) -> None:
    put(tmp_path, MANIFEST, "handler.py")

    assert sagemaker_models(tmp_path) == str(tmp_path)


def test_a_folder_without_an_archive_says_how_to_make_one(tmp_path: Path) -> None:
    put(tmp_path, "model.pth", "code/inference.py")

    with pytest.raises(CliError, match="no model archive in") as raised:
        sagemaker_models(tmp_path)
    assert "tsctl archive" in raised.value.hint
