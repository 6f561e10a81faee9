"""The version of an archive is read as the registration will read it; else there is none."""

import json
from pathlib import Path

import pytest

from tests.kit.archives import write_mar
from tests.models.archives.hostile import Build
from tests.models.archives.test_manifest_in import SEEN
from tsctl.daemon.marfile import MANIFEST
from tsctl.extensions.apply.file import read_source


@pytest.mark.filterwarnings("ignore:Overlapped entries", "ignore:Duplicate name")
@pytest.mark.parametrize(("build", "version"), SEEN.values(), ids=SEEN.keys())
def test_apply_sees_the_manifest_that_a_start_sees(build: Build, version: str | None, tmp_path: Path) -> None:
    (tmp_path / "m.mar").write_bytes(build())

    assert read_source("m.mar", None, tmp_path, None).version == (version or "")


def test_a_version_that_is_none_is_not_taken_from_a_manifest(tmp_path: Path) -> None:
    manifest = {"model": {"modelName": "m", "modelVersion": "\ud83c/.."}}
    write_mar(tmp_path / "m.mar", {MANIFEST: json.dumps(manifest).encode()})

    assert read_source("m.mar", None, tmp_path, None).version == ""
