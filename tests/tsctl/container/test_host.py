"""Who started a container is seen from its environment; its models are in the folders that this host mounts."""

from pathlib import Path

import pytest

from tsctl.container.host import SAGEMAKER_MODEL, Host, host_of, mounted_models, sagemaker_models, without_absent
from tsctl.daemon.marfile import MANIFEST
from tsctl.errors import CliError


@pytest.mark.parametrize(
    ("environment", "serve", "folders", "expected"),
    [
        pytest.param({}, True, [], Host.PLAIN, id="nobody"),
        pytest.param({"PROTOCOL_VERSION": "v1"}, False, [], Host.KSERVE, id="KServe"),
        pytest.param({"PROTOCOL_VERSION": "7"}, False, [], Host.PLAIN, id="a variable that only has this name"),
        pytest.param({}, True, [SAGEMAKER_MODEL], Host.SAGEMAKER, id="SageMaker"),
        pytest.param({}, False, [SAGEMAKER_MODEL], Host.PLAIN, id="a line of one's own there"),
    ],
)
def test_host(environment: dict[str, str], serve: bool, folders: list[Path], expected: Host) -> None:
    assert host_of(environment, serve, lambda path: path in folders) is expected


def test_a_placeholder_without_a_value_is_no_variable() -> None:
    environment = {"TS_SERVICE_ENVELOPE": "<no value>", "TS_A": "", "TS_B": "b", "OTHER": ""}

    assert without_absent(environment) == {"TS_B": "b", "OTHER": ""}


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
