"""The environment of workers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config import config
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.extension import Extension
from tsctl.daemon.tables import SETTINGS

CACHE = "TORCHINDUCTOR_CACHE_DIR"
SPINS = "GOMP_SPINCOUNT"


@pytest.fixture(autouse=True)
def without_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "EXTENSIONS", ())


def test_what_nobody_chose_is_left_as_it_was_inherited(tmp_path: Path) -> None:
    inherited = {"PATH": "/bin", "TS_SERVICE_ENVELOPE": "json", CACHE: "/mine", SPINS: "7"}

    assert model_environment(inherited, make_config(tmp_path)) == inherited


def test_what_is_compiled_is_kept_in_the_state_directory(tmp_path: Path) -> None:
    made = make_config(tmp_path)

    assert model_environment({}, made)[CACHE] == str(made.state_dir / "compiled")


def test_an_extension_adds_variables_unless_somebody_has_chosen_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Adding(Extension):
        def configure(
            self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
        ) -> Sequence[str]:
            values["worker_variables"] |= {"PLACE": str(values["state_dir"]), "MODE": "usual"}
            return ()

    monkeypatch.setattr(config, "EXTENSIONS", (Adding(),))
    made = make_config(tmp_path)

    found = model_environment({"MODE": "chosen"}, made)

    assert (found["PLACE"], found["MODE"]) == (str(made.state_dir), "chosen")


def test_what_an_extension_completes_without_keys_in_the_file_is_still_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Completing(Extension):
        settings = tuple(row for row in SETTINGS if row.name == "envelope")

        def configure(
            self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
        ) -> Sequence[str]:
            values["envelope"] = "body"
            return ()

    monkeypatch.setattr(config, "EXTENSIONS", (Completing(),))
    made = make_config(tmp_path)

    assert (made.envelope, made.origins["envelope"]) == ("body", "default")
    assert model_environment({"TS_SERVICE_ENVELOPE": "json"}, made)["TS_SERVICE_ENVELOPE"] == "json"


def test_threads_that_wait_soon_leave_their_core_to_others(tmp_path: Path) -> None:
    assert model_environment({}, make_config(tmp_path))[SPINS] == "3000"


@pytest.mark.parametrize("chosen", [{SPINS: "10"}, {"OMP_WAIT_POLICY": "active"}])
def test_how_threads_wait_is_left_to_whoever_chose_it(chosen: dict[str, str], tmp_path: Path) -> None:
    environment = model_environment(chosen, make_config(tmp_path))

    assert {name: value for name, value in environment.items() if name != CACHE} == chosen


@pytest.mark.parametrize(
    ("setting", "text", "variable", "value"),
    [
        ("envelope", "kserve", "TS_SERVICE_ENVELOPE", "kserve"),
        ("decode_input", "FALSE", "TS_DECODE_INPUT_REQUEST", "false"),
        ("limit_image_pixels", "true", "TS_LIMIT_MAX_IMAGE_PIXELS", "true"),
    ],
)
def test_a_setting_is_a_variable(setting: str, text: str, variable: str, value: str, tmp_path: Path) -> None:
    environment = model_environment(
        {variable: "inherited", CACHE: "", SPINS: ""}, make_config(tmp_path, **{setting: text})
    )

    assert environment == {variable: value, CACHE: "", SPINS: ""}


def test_hidden_variables_are_left_out_by_their_whole_name(tmp_path: Path) -> None:
    inherited = {"AWS_KEY": "k", "MY_AWS_KEY": "k", "aws_key": "k", "PATH": "/bin", CACHE: "", SPINS: ""}

    environment = model_environment(inherited, make_config(tmp_path, hide_environment="AWS_.*|PATHS?"))

    assert environment == {"MY_AWS_KEY": "k", "aws_key": "k", CACHE: "", SPINS: ""}


def test_a_worker_cannot_find_the_service_manager_of_the_daemon(tmp_path: Path) -> None:
    inherited = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "1", "LISTEN_FDS": "1", "PATH": "/bin"}

    environment = model_environment(inherited, make_config(tmp_path))

    assert environment.keys() - {CACHE, SPINS} == {"PATH"}
