"""Registered models survive a restart, and a `kill -9`."""

import json
from typing import Any

import pytest

from tests.e2e.served import Served, eventually


def listed(served: Served) -> dict[str, Any]:
    """Return `tsctl ls` as `MODEL/VERSION` → state, workers wanted, batch size, delay, default."""
    models = json.loads(served.tsctl("ls", "--json"))
    keys = ("state", "wanted", "batchSize", "maxBatchDelay", "policy", "default")
    return {f"{model['name']}/{model['version']}": tuple(model[key] for key in keys) for model in models}


def all_ready(served: Served) -> bool:
    return {state for state, *_ in listed(served).values()} <= {"ready", "no workers"}


@pytest.mark.thin
@pytest.mark.parametrize("end", [lambda served: served.tsctl("stop"), Served.kill], ids=["stop", "kill"])
def test_what_was_registered_comes_back_as_it_was(end: Any, served: Served) -> None:
    served.register("echo", "--batch-size", "4", "--max-delay", "20", "--batching", "greedy", version="1.0")
    served.register("echo", version="2.0")
    served.register("obey", "--name", "other", "--workers", "0")
    served.register("echo", name="gone")
    served.tsctl("scale", "echo/2.0", "2")
    served.tsctl("default", "echo/2.0")
    served.tsctl("unregister", "gone")
    before = listed(served)

    end(served)
    served.start()

    eventually(lambda: all_ready(served), "every worker is ready")
    assert listed(served) == before
    assert before["echo/1.0"] == ("ready", 1, 4, 20, "greedy", False)
    assert before["echo/2.0"] == ("ready", 2, 1, 100, "auto", True)
    assert served.describe("echo/1.0")["loadedAtStartup"] is True
    assert served.ask("/predictions/echo", b"x").status == 200
