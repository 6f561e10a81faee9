"""A flag wins over the environment, which wins over the default; what cannot be read is a sentence."""

import ast
from pathlib import Path

import pytest

from tests.kit.said import reason, said_in
from tests.places import ROOT
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.setting_values import MIB, Setting
from tsctl.daemon.tables import SETTINGS


def read_of_a_config(path: Path) -> set[str]:
    """Return the attributes that a module reads of something it calls `config`."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and getattr(node.value, "attr", getattr(node.value, "id", "")).removeprefix("_") == "config"
    }


def test_what_is_read_of_the_configuration_is_a_setting() -> None:
    known = set(vars(resolve({}, {}))) | {"model_metrics"}
    # `from …config.config import Config`, and extensions, whose kernel has one.
    files = [
        file for file in ROOT.glob("daemon/**/*.py") if "Config" in file.read_text() or "kernel." in file.read_text()
    ]
    found = {(file.name, name) for file in files for name in read_of_a_config(file)}

    assert len(found) > 60
    assert {each for each in found if each[1] not in known} == set()


@pytest.mark.parametrize(
    ("flags", "environment", "grace", "origin"),
    [
        pytest.param({}, {}, 30.0, "default", id="nobody said anything"),
        pytest.param({}, {"TSCTL_GRACE": "5"}, 5.0, "environment", id="the environment wins over the default"),
        pytest.param({"grace": "7"}, {"TSCTL_GRACE": "5"}, 7.0, "flag", id="a flag wins over the environment"),
        pytest.param({"grace": None}, {"TSCTL_GRACE": "5"}, 5.0, "environment", id="a flag not given says nothing"),
        pytest.param({"grace": "0"}, {"TSCTL_GRACE": "5"}, 0.0, "flag", id="zero is a value"),
    ],
)
def test_precedence(flags: dict[str, str | None], environment: dict[str, str], grace: float, origin: str) -> None:
    config = resolve(flags, environment)

    assert (config.grace, config.origins["grace"]) == (grace, origin)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: str(setting.name))
def test_every_setting_has_its_flag_its_variable_and_an_origin(setting: Setting) -> None:
    dashed = setting.name.replace("_", "-")

    assert setting.flag == f"--{dashed}"
    assert setting.variable == f"TSCTL_{setting.name.upper()}"
    assert resolve({}, {}).origins[setting.name] == "default"
    if setting.default is not None:
        assert setting.parse(str(setting.default).lower()) == setting.default, "what its own text would give"


@said_in("bad_values.txt")
def test_a_bad_value_is_a_sentence(given: str) -> str:
    name, _, text = given.partition(" ")
    return reason(lambda: resolve({name: text}, {}), StartError)


def test_a_bad_value_of_the_environment_names_its_variable() -> None:
    with pytest.raises(StartError, match=r"^TSCTL_RESPONSE_TIMEOUT: `0` is not a timeout"):
        resolve({}, {"TSCTL_RESPONSE_TIMEOUT": "0"})
    with pytest.raises(StartError, match=r"^TSCTL_GRACE: `soon`"):
        resolve({}, {"TSCTL_GRACE": "soon"})


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1048576", MIB), ("64MiB", 64 * MIB), ("64 mib", 64 * MIB), ("1GB", 10**9), ("2kB", 2000), ("7B", 7)],
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert resolve({"max_request_size": text}, {}).max_request_size == size


@pytest.mark.parametrize(
    ("largest", "chosen", "receiving"),
    [
        pytest.param("64MiB", None, 512 * MIB, id="by default half a GiB"),
        pytest.param("1GiB", None, 2048 * MIB, id="or twice the largest request"),
        pytest.param("64MiB", "64MiB", 64 * MIB, id="what is chosen, if one request finds room"),
    ],
)
def test_the_largest_request_finds_room(largest: str, chosen: str | None, receiving: int) -> None:
    flags = {"max_request_size": largest, "max_receiving_bytes": chosen}

    assert resolve(flags, {}).max_receiving_bytes == receiving
    with pytest.raises(StartError, match="`max_receiving_bytes` is 1000, less than `max_request_size`, 2000 bytes"):
        resolve({"max_request_size": "2000", "max_receiving_bytes": "1000"}, {})


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")

    config = resolve({"state_dir": "here", "socket": "~/s"}, {})

    assert (config.state_dir, config.socket) == (tmp_path / "here", Path("/home/someone/s"))


def test_a_model_store_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="no model store at") as caught:
        resolve({"model_store": str(tmp_path / "missing")}, {})

    assert "--model-store" in caught.value.hint
    assert resolve({"model_store": str(tmp_path)}, {}).model_store == tmp_path
    with pytest.raises(StartError, match="no model store at"):
        resolve({"model_store": "x" * 300}, {})


def test_a_user_without_a_home_is_told_to_name_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    with pytest.raises(StartError, match="has no home directory") as caught:
        resolve({}, {})

    assert "--state-dir" in caught.value.hint


def test_a_config_file_that_torchserve_would_read_is_noted_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.properties").write_text("load_models=ALL\n")
    base = {"socket": "s", "state_dir": str(tmp_path)}

    config = resolve(base, {}, tmp_path)
    named = resolve(base | {"ts_config": str(tmp_path / "config.properties")}, {}, tmp_path)

    sentence = "note: `config.properties` of this directory is not read; `--ts-config config.properties` reads it"
    assert (config.models, config.notes) == (None, (sentence,))
    assert (named.models, named.notes) == (("ALL",), ())
    assert resolve(base, {}, tmp_path / "elsewhere").notes == ()
