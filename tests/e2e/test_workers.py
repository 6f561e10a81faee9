"""Workers that die, hang, or cannot load."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Answer, Served, eventually


def obey(served: Served, word: str) -> Answer:
    return served.predict("obey", {"do": word})


@pytest.mark.thin
def test_an_idle_worker_that_is_killed_is_replaced_and_nobody_notices(served: Served) -> None:
    served.register("echo")
    assert served.ask("/predictions/echo", b"x").status == 200
    (before,) = served.pids("echo")

    os.kill(before, signal.SIGKILL)

    eventually(lambda: served.pids("echo") not in ([], [before]), "another worker is ready")
    assert served.ask("/predictions/echo", b"x").status == 200
    assert "SIGKILL" in served.describe("echo")["tsctl"]["lastExit"]


@pytest.mark.thin
def test_with_retry_it_is_run_once_more(served: Served) -> None:
    served.register("obey", config="retry: true\n")
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
def test_workers_for_which_memory_has_no_room_are_refused_before_any_starts(served: Served) -> None:
    served.register("takes_its_share")
    before = served.pids("takes_its_share")

    refused = served.run("scale", "takes_its_share", "500")

    assert (refused.returncode, served.pids("takes_its_share")) == (1, before)
    assert "500 workers are requested, and memory has room for" in refused.stderr
    served.tsctl("scale", "takes_its_share", "2")
    assert len(served.pids("takes_its_share")) == 2


@pytest.mark.thin
def test_a_worker_sees_the_gpus_that_the_daemon_uses_in_its_order_and_unknown_ones_are_warned_of(idle: Served) -> None:
    idle.environment["CUDA_VISIBLE_DEVICES"] = "GPU-none,7"

    started = idle.run("start", "--gpus", "2")
    idle.note_address()
    idle.register("sees_gpus", "--workers", "2")

    assert "(TorchServe's `number_of_gpu`) is 2, and none was found" in started.stderr
    seen = [idle.ask("/predictions/sees_gpus", b"").body for _ in range(20)]
    assert set(seen) <= {b"0 of GPU-none,7", b"1 of GPU-none,7"}


@pytest.mark.thin
def test_scaling_down_lets_a_worker_finish_its_batch(served: Served) -> None:
    served.register("obey")
    gate = served.folder / "gate"

    with ThreadPoolExecutor(2) as clients:
        asked = clients.submit(obey, served, f"wait {gate}")
        eventually(lambda: served.describe("obey")["tsctl"]["batching"]["running"] == 1, "the request runs")
        scaled = clients.submit(served.tsctl, "scale", "obey", "0")
        eventually(lambda: not served.pids("obey"), "the worker is told to leave")
        gate.touch()

    assert scaled.result() == "Scaled `obey` 1.0 from 1 to 0 workers\n"
    assert asked.result().status == 200
