"""config.properties and torchserve's flags, with a real daemon."""

import json
from typing import Any

import pytest

from tests.e2e.served import Served, eventually


def configure(served: Served, *lines: str) -> str:
    """Write a config.properties with a free port and these lines; give its path."""
    file = served.folder / "config.properties"
    file.write_text("\n".join(("inference_address=http://127.0.0.1:0", f"model_store={served.store}", *lines)))
    for name in ("TSCTL_INFERENCE_ADDRESS", "TSCTL_MODEL_STORE"):
        served.environment.pop(name, None)
    return str(file)


def all_ready(served: Served, count: int) -> bool:
    models = served.status["models"]
    return len(models) == count and all(model["state"] == "ready" for model in models)


def settings(served: Served, *model: str) -> dict[str, tuple[Any, str]]:
    document = json.loads(served.tsctl("config", *model, "--json"))
    return {setting["name"]: (setting["value"], setting["origin"]) for setting in document}


@pytest.mark.thin
def test_a_folder_of_archives_and_a_config_file_are_served(idle: Served) -> None:
    idle.pack("echo", version="1.0")
    idle.pack("echo", name="second", version="3.1")
    block = {"second": {"3.1": {"defaultVersion": True, "minWorkers": 2, "maxWorkers": 2, "batchSize": 4}}}
    file = configure(idle, "# moved", "load_models=ALL", "default_workers_per_model=1", f"models={json.dumps(block)}")

    idle.start("--ts-config", file)

    eventually(lambda: all_ready(idle, 2), "both are loaded")
    assert [idle.describe(name)["loadedAtStartup"] for name in ("echo", "second")] == [True, True]
    assert len(idle.describe("echo")["workers"]) == 1 and len(idle.describe("second")["workers"]) == 2
    assert settings(idle, "second")["batchSize"] == (4, "the models block of config.properties")
    assert idle.ask("/predictions/second", b"x").status == 200


def test_torchserves_command_line_starts_the_models_it_names(idle: Served) -> None:
    idle.pack("echo")
    idle.pack("obey")
    idle.environment["TSCTL_DEFAULT_WORKERS"] = "1"

    started = idle.run(
        "start", "--ncs", "--model-store", str(idle.store), "--models", "one=echo.mar", "two=obey.mar", "--dt"
    )

    assert started.returncode == 0
    assert "`--ncs` is taken as `--no-restore`" in started.stderr
    eventually(lambda: all_ready(idle, 2), "both are loaded")
    assert [model["name"] for model in idle.status["models"]] == ["one", "two"]
    assert settings(idle)["restore"] == (False, "flag")
