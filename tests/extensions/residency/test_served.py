"""Models that come and go in a real daemon: loaded by a request, unloaded when idle, held by an operator."""

import json

import pytest

from tests.e2e.served import Served, eventually


def state(served: Served, model: str) -> str:
    return str(served.describe(model)["tsctl"]["state"])


@pytest.mark.thin
def test_a_model_is_loaded_by_a_request_unloaded_when_idle_and_held_by_an_operator(served: Served) -> None:
    registered = served.tsctl(
        "register", served.pack("echo"), "--loading", "on_demand", "--keep-alive", "1s", "--workers", "2"
    )
    assert "the first request loads it" in registered
    assert state(served, "echo") == "unloaded"
    assert served.ask("/ready", method="GET").status == 200

    assert served.ask("/predictions/echo", b"x").status == 200
    eventually(lambda: state(served, "echo") == "unloaded", "the idle model is unloaded")
    residence = served.describe("echo")["tsctl"]["residence"]
    assert residence["why"] == "idle for 1s"
    assert (residence["loads"], residence["unloads"]) == ({"request": 1}, {"idle": 1})
    assert "unloaded" in served.tsctl("ls")

    served.tsctl("unload", "echo")
    served.stop()
    served.start()
    assert residence["loadSeconds"] == served.describe("echo")["tsctl"]["residence"]["loadSeconds"] > 0.0
    refused = served.ask("/predictions/echo", b"x")
    assert (refused.status, "tsctl load echo" in refused.json["message"]) == (503, True)
    served.tsctl("set", "echo", "--keep-alive", "forever")
    assert "2 of 2 workers ready" in served.tsctl("load", "echo")
    assert served.ask("/predictions/echo", b"x").status == 200


def test_an_upgrade_keeps_what_is_loaded_and_what_is_not(served: Served) -> None:
    for name in ("here", "away"):
        served.tsctl("register", served.pack("echo", name), "--loading", "on_demand")
    assert served.ask("/predictions/here", b"x").status == 200
    served.register("echo", "--loading", "on_demand", "--keep-alive", "1s")
    assert served.ask("/predictions/echo", b"x").status == 200
    eventually(lambda: state(served, "echo") == "unloaded", "the idle model is unloaded")
    took = served.describe("echo")["tsctl"]["residence"]["loadSeconds"]

    served.tsctl("upgrade")
    served.note_address()

    assert served.describe("echo")["tsctl"]["residence"]["loadSeconds"] == took > 0.0

    assert {name: state(served, name) for name in ("here", "away")} == {"here": "ready", "away": "unloaded"}
    assert served.ask("/predictions/away", b"x").status == 200


def test_the_memory_of_all_models_is_bounded_and_the_numbers_are_the_machines(served: Served) -> None:
    """The budget has room for the daemon's smallest worker, and not for the files of the other model."""
    served.stop()
    started = served.run("start", "--gpus", "0", "--models-memory", "host=64MiB,gpu=1GiB")
    served.note_address()
    assert "this daemon uses no GPU: `gpu=` limits nothing" in started.stderr
    served.tsctl("register", served.pack("echo"), "--loading", "on_demand")
    weights = served.folder / "weights"
    weights.write_bytes(bytes(80 * 2**20))
    served.tsctl("register", served.pack("echo", "large", extra_files=str(weights)), "--loading", "on_demand")

    assert served.ask("/predictions/echo", b"x").status == 200
    refused = served.ask("/predictions/large", b"x")

    assert (refused.status, refused.headers["retry-after"]) == (503, "30")
    assert "of 64 MiB on host do not fit" in refused.json["message"]
    eventually(lambda: served.describe("echo")["tsctl"]["residence"]["memory"], "the worker's memory is measured")
    taken = served.describe("echo")["tsctl"]["residence"]["memory"]["host"]
    assert 2**20 < taken < 64 * 2**20, json.dumps(taken)
