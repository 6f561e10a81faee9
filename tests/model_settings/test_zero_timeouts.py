"""A timeout of 0 seconds would kill every worker: each border refuses it, with its name, the value and the remedy."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.api.house import House
from tsctl.commands.register import command as register
from tsctl.commands.set import command as set_
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.model_settings import ModelSetting
from tsctl.daemon.model_settings.kinds import Duration
from tsctl.daemon.tables import MODEL_SETTINGS, SETTINGS

# Earlier versions accepted 0 for these.
TIMEOUTS = tuple(row for row in MODEL_SETTINGS if isinstance(row.kind, Duration) and row.kind.positive)
KEYS = {setting.name: setting.key for setting in SETTINGS}
each_timeout = pytest.mark.parametrize("row", TIMEOUTS, ids=lambda row: row.name)
each_zero = pytest.mark.parametrize("zero", ["0", "0.0", "-0"])


def ask(house: House, method: str, target: str, body: Any = None) -> tuple[int, str]:
    headers = [] if body is None else ["Content-Type: application/json"]
    content = b"" if body is None else json.dumps(body).encode()
    status, answer = asyncio.run(house.tell(method, target, content, *headers))
    return status, answer["message"]


def test_they_are_those_of_a_worker() -> None:
    assert [row.name for row in TIMEOUTS] == ["response_timeout", "startup_timeout"]


@each_timeout
@each_zero
@pytest.mark.parametrize("command", [register, set_], ids=["register", "set"])
def test_the_command_line_refuses_it(row: ModelSetting, zero: str, command: Any) -> None:
    result = CliRunner().invoke(command, ["m", f"{row.flag}={zero}"])

    assert result.exit_code == 2
    assert f"'{row.flag}': `{zero}`; expected more than 0 seconds; leave it out for the daemon's default" in " ".join(
        result.output.split()
    )


@each_timeout
@each_zero
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_the_management_api_refuses_it(row: ModelSetting, zero: str, method: str, tmp_path: Path) -> None:
    house = House(tmp_path)
    asyncio.run(house.serve("m"))
    house.put("n")
    target, query, wanted = ("/models", "url=n&", {"url": "n"}) if method == "POST" else ("/models/m", "", {})

    by_query = ask(house, method, f"{target}?{query}{row.rest}={zero}")
    by_json = ask(house, method, target, wanted | {row.rest: float(zero)})

    sentence = "expected more than 0 seconds; leave it out for the daemon's default."
    assert by_query == (400, f"{row.rest} is '{zero}'; {sentence}")
    assert by_json == (400, f"{row.rest} is {float(zero)!r}; {sentence}")
    assert len(list(house.registry)) == 1


@each_timeout
def test_an_archive_and_the_models_block_are_refused(row: ModelSetting, tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text(f"models={json.dumps({'n': {'1.0': {row.yaml: 0}}})}\n")
    house = House(tmp_path, ts_config=str(file))
    house.put("m", config=f"{row.yaml}: 0")
    house.put("n")

    answers = [ask(house, "POST", f"/models?url={name}") for name in ("m", "n")]

    sentence = f"`{row.yaml}` is `0`; expected more than 0 seconds; leave it out for the daemon's default."
    sources = ("model-config.yaml", "the models block of config.properties")
    assert answers == [(400, f"{source}: {sentence}") for source in sources]
    assert list(house.registry) == []


@each_timeout
@each_zero
@pytest.mark.parametrize("border", ["flag", "environment", "file"])
def test_the_daemon_does_not_start_with_it(row: ModelSetting, zero: str, border: str, tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text(f"{KEYS[row.daemon]}={zero}\n")
    flags = {
        "flag": {row.daemon: zero},
        "environment": {},
        "file": {"ts_config": str(file)},
    }[border]
    environment = {f"TSCTL_{row.daemon.upper()}": zero} if border == "environment" else {}

    with pytest.raises(StartError) as caught:
        resolve({"state_dir": str(tmp_path)} | flags, environment)

    assert row.daemon.replace("_", "") in str(caught.value).lower().replace("_", "").replace("-", "")
    assert f"`{zero}` is not a timeout of more than 0 seconds; leave the setting out for the default" in str(
        caught.value
    )
