"""TorchServe's config.properties: what its keys mean here, and that none of them is lost silently."""

from pathlib import Path

import pytest

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.properties import INSTEAD, KEYS, MEANINGLESS, READ, STOPS, read_config_file
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.settings import CORE_SETTINGS
from tsctl.daemon.tables import SETTINGS


def write(folder: Path, *lines: str) -> Path:
    file = folder / "config.properties"
    file.write_text("\n".join(lines) + "\n")
    return file


def configured(folder: Path, *lines: str, environment: dict[str, str] | None = None, **flags: str) -> Config:
    """Resolve a configuration with a file of these lines."""
    return resolve({"ts_config": str(write(folder, *lines))} | flags, environment or {})


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["  default_response_timeout = 60  "], id="with spaces around"),
        pytest.param(["default_response_timeout=60\r", "\r"], id="from Windows"),
    ],
)
def test_the_syntax_is_that_of_java(lines: list[str], tmp_path: Path) -> None:
    assert configured(tmp_path, *lines).response_timeout == 60.0


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_path_with_an_umlaut_is_read_in_both_encodings(encoding: str, tmp_path: Path) -> None:
    store = tmp_path / "größe"
    store.mkdir()
    file = tmp_path / "config.properties"
    file.write_bytes(f"model_store={store}".encode(encoding))

    assert resolve({"ts_config": str(file)}, {}).model_store == store


@pytest.mark.parametrize("variable", ["TSCTL_TS_CONFIG", "TS_CONFIG_FILE"])
def test_the_environment_may_name_the_file(variable: str, tmp_path: Path) -> None:
    file = write(tmp_path, "unregister_model_timeout=5")

    assert resolve({}, {variable: str(file)}).grace == 5.0


def test_what_is_said_instead_of_a_key_is_about_keys_without_an_effect() -> None:
    assert all(keys and keys <= MEANINGLESS for keys, _ in INSTEAD)


def test_the_models_block_may_go_over_many_lines(tmp_path: Path) -> None:
    config = configured(tmp_path, "models={\\", '  "m": {\\', '    "1.0": {"batchSize": 4}\\', "}}")

    assert config.models_block == {"m": {"1.0": {"batchSize": 4}}}


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot read `.*nowhere`: No such file or directory"):
        read_config_file(tmp_path / "nowhere", {})


def test_every_key_of_torchserve_has_one_meaning() -> None:
    assert KEYS.keys() & MEANINGLESS == KEYS.keys() & READ == MEANINGLESS & READ == set()
    assert len(KEYS) == sum(bool(setting.key) for setting in SETTINGS)
    core = {setting.key for setting in CORE_SETTINGS if setting.key}  # an extension's go with it
    assert len(core | STOPS.keys() | MEANINGLESS) > 56
