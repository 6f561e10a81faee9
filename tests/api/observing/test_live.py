"""The control socket shows the counts of all versions, and the latest batches of one."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error
from tsctl.daemon.api.management.status import Urls, status_document
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.job import Reply
from tsctl.daemon.core.machine.processes import parse_stat, process_facts
from tsctl.daemon.metrics.histogram import FINE
from tsctl.handlers.wire import Declared, Input

NO_SEQUENCE = "after is 'x'; expected a sequence from an earlier answer."
NOT_ALLOWED = "Requested method is not allowed, please refer to API document."


def ask(house: House, target: str) -> Any:
    status, document = asyncio.run(house.tell("GET", target))
    assert status == 200, document
    return document


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A daemon with a model that has answered two requests, one of them with an error, in one batch."""
    house = House(tmp_path)

    async def begin() -> None:
        await house.serve("m", config="batchSize: 4\nmaxBatchDelay: 20\nbatching: fixed\n")
        house.engine.batch_time = lambda size: 0.05
        house.engine.answer = lambda job: (
            Reply(500, b"no", error="E") if job.params[0].value == b"b" else Reply(200, b"")
        )
        for body in (b"a", b"b"):
            house.send("POST", "/predictions/m", body)
        house.clock.advance(1.0)

    asyncio.run(begin())
    return house


def test_a_model_without_requests_has_counts_of_zero(tmp_path: Path) -> None:
    house = House(tmp_path)
    asyncio.run(house.serve("m", workers=2))

    document = ask(house, "/tsctl/live")

    (model,) = document["models"]
    assert (document["pid"], document["started"]) == (os.getpid(), 1.0)
    assert document["time"] > 1e9 and isinstance(document["version"], str)
    assert (model["name"], model["version"], model["default"], model["state"]) == ("m", "1.0", True, "ready")
    assert (model["ready"], model["wanted"], model["restarting"]) == (2, 2, 0)
    assert (model["queued"], model["running"], model["oldestMs"], model["lastError"]) == (0, 0, None, None)
    assert model["requests"] == {"total": 0, "codes": {}, "errors": 0}
    assert (model["refused"], model["expired"], model["batches"]) == ({}, {}, {"total": 0, "requests": 0})
    assert sum(model["latency"]["counts"]) == 0 and model["latency"]["sum"] == 0
    assert [worker["state"] for worker in model["workers"]] == ["READY", "READY"]
    assert model["recent"]["requests"] == 0 and model["troubles"] == []


def test_a_model_that_answers_in_pieces_is_told(tmp_path: Path) -> None:
    house = House(tmp_path)
    for name, streams in (("m", False), ("n", True)):
        house.engine.declared = Declared([Input("text", "text")], batches=False, streams=streams)
        asyncio.run(house.serve(name))

    assert [each["inPieces"] for each in ask(house, "/tsctl/live")["models"]] == [False, True]


def test_answers_and_batches_are_counted(house: House) -> None:
    (model,) = ask(house, "/tsctl/live")["models"]

    assert model["requests"] == {"total": 2, "codes": {"200": 1, "500": 1}, "errors": 1}
    assert model["batches"] == {"total": 1, "requests": 2}
    assert model["latency"]["bounds"] == list(FINE)
    assert sum(model["latency"]["counts"]) == 2 and model["latency"]["sum"] == pytest.approx(0.14, abs=0.001)
    assert (model["batchSize"], model["maxBatchDelay"], model["policy"]) == (4, 20, "fixed")


def test_a_waiting_request_has_an_age(tmp_path: Path) -> None:
    house = House(tmp_path)

    async def begin() -> None:
        await house.serve("m")
        house.engine.batch_time = lambda size: 100.0
        for _ in range(3):  # one runs, one is sent ahead
            house.send("POST", "/predictions/m", b"x")
            house.clock.settle()
        house.clock.advance(2.0)

    asyncio.run(begin())

    (model,) = ask(house, "/tsctl/live")["models"]
    assert (model["running"], model["queued"], model["oldestMs"]) == (1, 2, 2000.0)


def test_a_worker_that_ended_is_being_replaced(house: House) -> None:
    house.engine.load_time = 10.0

    house.engine.workers[0].die("killed by SIGKILL")
    house.clock.advance(1.0)

    (model,) = ask(house, "/tsctl/live")["models"]
    assert (model["ready"], model["wanted"], model["restarting"]) == (0, 1, 1)
    assert [worker["state"] for worker in model["workers"]] == ["STARTING"]


def test_the_batches_of_a_version_are_told_with_their_reason(house: House) -> None:
    document = ask(house, "/tsctl/batches?model=m")

    (batch,) = document["batches"]
    assert document["last"] == batch["sequence"]
    assert batch.pop("time") > 1e9 and batch.pop("sequence") > 0
    assert batch == {
        "version": "1.0", "size": 2, "limit": 4, "reason": "delay",
        "meaning": "a request had been held for the maximum delay", "waitedMs": 20.0, "queued": 0, "worker": 1,
        "tookMs": 50.0, "failed": 1,
    }  # fmt: skip


def test_only_new_batches_are_told(house: House) -> None:
    last = ask(house, "/tsctl/batches?model=m/1.0")["last"]

    assert ask(house, f"/tsctl/batches?model=m&after={last}") == {"last": last, "batches": []}


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/tsctl/batches", (400, "BadRequestException", "Parameter model is required: MODEL or MODEL/VERSION.")),
        ("GET", "/tsctl/batches?model=m&after=x", (400, "BadRequestException", NO_SEQUENCE)),
        ("GET", "/tsctl/batches?model=x", (404, "ModelNotFoundException", "Model not found: x")),
        ("POST", "/tsctl/live", (405, "MethodNotAllowedException", NOT_ALLOWED)),
        ("POST", "/tsctl/batches?model=m", (405, "MethodNotAllowedException", NOT_ALLOWED)),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused(house: House, method: str, target: str, expected: tuple[int, str, str]) -> None:
    assert asyncio.run(house.tell(method, target)) == error(*expected)


def test_a_tcp_address_has_neither(tmp_path: Path) -> None:
    house = House(tmp_path, own=False)

    for target in ("/tsctl/live", "/tsctl/batches?model=m"):
        status, _ = asyncio.run(house.tell("GET", target))
        assert status == 404


def test_a_program_may_have_any_name() -> None:
    facts = parse_stat("7 (a) b (c)) S " + " ".join(str(number) for number in range(4, 30)))

    assert facts.cpu == (14 + 15) / os.sysconf("SC_CLK_TCK") and facts.memory == 24 * os.sysconf("SC_PAGESIZE")


def test_this_process_uses_memory_and_one_that_has_ended_does_not(tmp_path: Path) -> None:
    mine = process_facts(os.getpid())

    assert mine.memory > 1_000_000 and mine.cpu > 0
    assert process_facts(0) == process_facts(7, tmp_path) == (0, 0.0)


def test_each_document_of_a_version_tells_the_same_troubles(house: House, tmp_path: Path) -> None:
    (live,) = ask(house, "/tsctl/live")["models"]
    config = resolve({"state_dir": str(tmp_path), "socket": str(tmp_path / "s")}, {})
    (listed,) = status_document(config, Urls(), house.registry, 1.0)["models"]
    (described,) = ask(house, "/models/m")

    assert live["troubles"] == listed["troubles"] == described["tsctl"]["troubles"] == ["50 % errors"]
    assert live["recent"] == listed["recent"] == described["tsctl"]["recent"]
