"""A handler is asked to describe itself: by a job of its own, alone, before the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.kit.daemon import NEVER, until
from tsctl.daemon.core.job import Job, JobPhase, Reply
from tsctl.daemon.extensions.customized.metadata import metadata_of

ASK = "/models/m?customized=true"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.engine.answer = lambda job: Reply(200, b'{"classes": 3}', "", [("Content-Type", "text/x-odd")])
    return house


async def serve_all(house: House, *versions: str, **how: Any) -> None:
    for version in versions or ("1.0",):
        await house.serve("m", version, **how)


def serve(house: House, *versions: str, **how: Any) -> None:
    asyncio.run(serve_all(house, *versions, **how))


def tell(house: House, target: str) -> tuple[int, Any]:
    return asyncio.run(house.tell("GET", target))


def jobs(house: House) -> list[Job]:
    return [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]


def test_the_handler_is_asked_to_describe_itself_and_sees_no_token(house: House) -> None:
    serve(house)

    asyncio.run(house.ask("GET", ASK, b"", "Authorization: Bearer secret"))

    (job,) = jobs(house)
    assert dict(job.headers) == {"Host": "a", "Content-Length": "0", "describe": "True"}


@pytest.mark.parametrize(
    ("body", "metadata"),
    [
        pytest.param(b'{"a": [1]}', {"a": [1]}, id="an object is taken"),
        pytest.param(b"", None, id="nothing is no metadata"),
        pytest.param(b" \n", None, id="neither is a blank"),
        pytest.param(b"I ignore that", {}, id="text counts as an empty object"),
        pytest.param(b"[1]", {}, id="so does a list"),
        pytest.param(b"\xff\xfe", {}, id="and bytes"),
        pytest.param(b"[" * 100_000, {}, id="and endless nesting"),
    ],
)
def test_what_an_answer_says(body: bytes, metadata: dict[str, Any] | None) -> None:
    assert metadata_of(body) == metadata


async def test_the_question_goes_before_what_waits_and_alone(house: House) -> None:
    house.engine.batch_time = lambda size: 10.0
    await serve_all(house, config="batchSize: 4\nmaxBatchDelay: 0")

    house.send("POST", "/predictions/m", b"runs")
    house.send("POST", "/predictions/m", b"waits")
    peer = house.send("GET", ASK)
    await asyncio.sleep(0)
    house.clock.settle()
    house.clock.advance(10.0)
    house.clock.advance(10.0)
    await until(lambda: bool(peer.answers))

    model = house.registry.find("m")
    assert [len(batch.jobs) for batch in house.engine.workers[0].batches] == [1, 1, 1]
    assert [batch.reason for batch in house.engine.workers[0].batches][1] == "solo"
    assert model.dispatcher.reasons["solo"] == 1


@pytest.mark.parametrize("running", [False, True], ids=["while it waits", "while it runs"])
async def test_a_client_that_is_lost_takes_its_question_with_it(house: House, running: bool) -> None:
    house.engine.batch_time = lambda size: 10.0
    await serve_all(house)

    if not running:
        house.send("POST", "/predictions/m")
    peer = house.send("GET", ASK)
    await asyncio.sleep(0)
    house.clock.settle()
    peer.leave()
    await asyncio.sleep(0)
    house.clock.advance(30.0)

    assert peer.answers == []
    model = house.registry.find("m")
    assert model.idle
    assert all(job.phase is JobPhase.ENDED for job in jobs(house))
    assert len(jobs(house)) == 1


async def test_a_client_that_has_only_ended_its_side_gets_the_answer_that_is_under_way(house: House) -> None:
    house.engine.batch_time = lambda size: 10.0
    await serve_all(house)
    peer = house.send("GET", ASK)
    await asyncio.sleep(0)
    house.clock.settle()

    peer.finish()
    house.clock.advance(10.0)
    await until(lambda: bool(peer.answers))

    assert peer.statuses == [200]


async def test_a_handler_may_answer_in_pieces(house: House) -> None:
    house.engine.answer = lambda job: Reply(200, b' "of": 3}')
    house.engine.batch_time = lambda size: NEVER
    await serve_all(house)
    asking = asyncio.ensure_future(house.tell("GET", ASK))
    await until(lambda: bool(jobs(house)))
    (worker,) = house.engine.workers

    worker.stream(b'{"classes": 3,')
    worker._finish(0.1)
    _, (described,) = await asking

    assert described["customizedMetadata"] == {"classes": 3, "of": 3}
