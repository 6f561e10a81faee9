"""Large requests in tensors are read in turns with other requests."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Reply
from tsctl.handlers.wire import Declared, Input

INFER = "/v2/models/m/infer"
CONFIG = "inputs: [{name: a, datatype: INT32, shape: [-1]}]"
TEXTS = "inputs: [{name: a, datatype: BYTES, shape: [-1]}]"
MANY = 200_000


def numbers(count: int = MANY, last: str = "1") -> bytes:
    data = ",".join(["1"] * (count - 1) + [last])
    return f'{{"inputs": [{{"name": "a", "datatype": "INT32", "shape": [{MANY}], "data": [{data}]}}]}}'.encode()


def recorded(house: House) -> list[bytes]:
    """Return the list to which the values of each job are added."""
    values: list[bytes] = []

    def answer(job: Job) -> Reply:
        values.extend(bytes(each.value) for each in job.params)
        return Reply(200, b"{}")

    house.engine.answer = answer
    return values


async def declared(root: Path, config: str = CONFIG) -> House:
    house = House(root, max_body=10_000_000)
    await house.serve("m", config=config)
    return house


async def test_others_are_answered_while_it_is_read_and_it_reaches_the_worker(tmp_path: Path) -> None:
    house = await declared(tmp_path)
    values = recorded(house)

    large = asyncio.ensure_future(house.ask("POST", INFER, numbers()))
    for _ in range(5):
        await asyncio.sleep(0)
    live = await house.ask("GET", "/v2/health/live")

    assert (live.status, large.done()) == (200, False)
    assert (await large).status == 200
    assert values == [b"\x01\0\0\0" * MANY]


async def test_many_elements_of_bytes_are_read_so_whatever_they_are_called(tmp_path: Path) -> None:
    house = await declared(tmp_path, TEXTS)
    values = recorded(house)
    data = bytes(4 * MANY)
    tensor = {"name": "a", "datatype": "BYTES", "shape": [MANY], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).replace("BYTES", "\\u0042YTES").encode()

    large = asyncio.ensure_future(
        house.ask("POST", INFER, head + data, f"Inference-Header-Content-Length: {len(head)}")
    )
    for _ in range(5):
        await asyncio.sleep(0)

    assert not large.done()
    assert (await large).status == 200
    assert values == [data]


@pytest.mark.parametrize(
    "body", [numbers(last="1.5"), numbers(MANY - 1), numbers()[:-1]], ids=["type", "shape", "JSON"]
)
async def test_a_malformed_one_is_refused_and_counted_once(tmp_path: Path, body: bytes) -> None:
    house = await declared(tmp_path)

    status, document = await house.tell("POST", INFER, body)

    assert (status, document["type"]) == (400, "BadRequestException")
    assert house.registry.find("m").metrics.codes == {400: 1}
    assert not house.engine.workers[-1].batches


@pytest.mark.parametrize(
    ("target", "body"),
    [(INFER, numbers()), ("/v2/models/m/generate", json.dumps({"text_input": "a" * MANY}).encode())],
    ids=["infer", "generate"],
)
async def test_what_happens_while_it_is_read_counts(tmp_path: Path, target: str, body: bytes) -> None:
    house = House(tmp_path, max_body=10_000_000)
    house.engine.declared = Declared([Input("text", "text")], batches=False)
    await house.serve("m", config="clientTimeoutInMills: 1000")

    late = asyncio.ensure_future(house.ask("POST", target, body))
    for _ in range(5):
        await asyncio.sleep(0)
    house.clock.advance(2.0)
    gone = asyncio.ensure_future(house.ask("POST", target, body))
    for _ in range(5):
        await asyncio.sleep(0)
    await house.registrar.unregister("m", None)

    assert [(await each).status for each in (late, gone)] == [504, 404]
