"""Workers that die, hang, or cannot load."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Answer, Served, eventually


def obey(served: Served, word: str) -> Answer:
    return served.ask("/predictions/obey", json.dumps({"do": word}).encode(), content_type="application/json")


def worker_pids(served: Served, model: str) -> list[int]:
    return [worker["pid"] for worker in served.describe(model)["workers"] if worker["status"] == "READY"]


@pytest.mark.thin
def test_an_idle_worker_that_is_killed_is_replaced_and_nobody_notices(served: Served) -> None:
    served.register("echo")
    assert served.ask("/predictions/echo", b"x").status == 200
    (before,) = worker_pids(served, "echo")

    os.kill(before, signal.SIGKILL)

    eventually(lambda: worker_pids(served, "echo") not in ([], [before]), "another worker is ready")
    assert served.ask("/predictions/echo", b"x").status == 200
    assert "SIGKILL" in served.describe("echo")["tsctl"]["lastExit"]


@pytest.mark.thin
def test_with_retry_it_is_run_once_more(served: Served) -> None:
    config = served.folder / "model-config.yaml"
    config.write_text("retry: true\n")
    served.register("obey", config_file=config)
    assert obey(served, "nothing").status == 200

    answer = obey(served, "die once")

    assert answer.status == 200
    assert served.describe("obey")["tsctl"]["batching"]["reasons"]["retry"] == 1


@pytest.mark.thin
def test_a_handler_that_cannot_load_is_told_with_its_own_traceback(served: Served) -> None:
    failed = served.run("register", served.pack("no_load"))

    assert failed.returncode == 1
    assert "FileNotFoundError: the vocabulary is missing" in failed.stderr
    assert "in load" in failed.stderr
    assert "handlers/runtime/runtime.py" not in failed.stderr
    assert json.loads(served.tsctl("ls", "--json")) == []
    assert not list((served.folder / "state" / "models").iterdir())


@pytest.mark.thin
def test_scaling_down_lets_a_worker_finish_its_batch(served: Served) -> None:
    served.register("obey")
    gate = served.folder / "gate"
    connection = served.connect()
    connection.request(
        "POST", "/predictions/obey", json.dumps({"do": f"wait {gate}"}), {"Content-Type": "application/json"}
    )
    eventually(lambda: served.describe("obey")["tsctl"]["batching"]["running"] == 1, "the request runs")

    with ThreadPoolExecutor(1) as operator:
        scaled = operator.submit(served.tsctl, "scale", "obey", "0")
        eventually(lambda: not worker_pids(served, "obey"), "the worker is told to leave")
        gate.touch()

    assert scaled.result() == "Scaled `obey` 1.0 from 1 to 0 workers\n"
    assert connection.getresponse().status == 200
    connection.close()
