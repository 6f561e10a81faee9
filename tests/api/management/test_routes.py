"""The management API: TorchServe's commands, statuses and sentences."""

import asyncio
import json
from typing import Any

import pytest

from tests.api.house import House, said, sentence
from tests.kit.version import StubVersion
from tsctl.daemon.api.management.control import worker_of
from tsctl.daemon.api.management.describe import describe
from tsctl.daemon.workers.cores import Placement
from tsctl.handlers.wire import Loaded


def tell(house: House, method: str, target: str, body: bytes = b"", *headers: str) -> tuple[int, Any]:
    return asyncio.run(house.tell(method, target, body, *headers))


def serve(house: House, *versions: str) -> None:
    async def serve_all() -> None:
        for version in versions or ("1.0",):
            await house.serve("m", version)

    asyncio.run(serve_all())


def test_the_threads_that_a_handler_has_set_are_those_that_count(house: House) -> None:
    house.engine.report = Loaded(0.1, own_handle=True, threads=2)
    for name in ("m", "other"):
        asyncio.run(house.serve(name, workers=1))

    assert tell(house, "GET", "/models/m")[1][0]["tsctl"]["threads"]["warning"] is None


def test_the_operators_number_of_threads_is_each_workers(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "16")

    model = asyncio.run(house.serve("m", workers=1))

    told = describe(model)["tsctl"]["threads"]
    assert told["perWorker"] == 16
    assert told["warning"] == "1 × 16 threads share 8 cores and slow each other down; OMP_NUM_THREADS is 16: unset it"


def test_who_would_serve_it_elsewhere_is_told_the_names_of_all_gpus_as_the_workers_are() -> None:
    bench = StubVersion(placement=Placement(names=("GPU-a", "GPU-b")))

    assert worker_of(bench.model, {})["gpuNames"] == ["GPU-a", "GPU-b"]
    assert bench.workers[0].spec.gpu_names == ("GPU-a", "GPU-b")


async def names(house: House, query: str = "") -> tuple[list[str], str | None]:
    """A page of the listing: names and token."""
    _, document = await house.tell("GET", f"/models{query}")
    return [entry["modelName"] for entry in document["models"]], document.get("nextPageToken")


async def test_a_page_has_at_most_a_hundred(house: House) -> None:
    for number in range(101):
        await house.serve(f"m{number}", workers=0)

    listed, token = await names(house, "?limit=1000")

    assert (len(listed), token) == (100, "100")


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/models/m", 200),
        ("GET", "/models/m/all", 200),
        ("PUT", "/models/m?min_worker=2&synchronous=true", 200),
        ("PUT", "/models/m/1.0/set-default", 200),
        ("DELETE", "/models/m/1.0", 200),
    ],
)
async def test_a_command_for_a_model_that_is_being_registered_waits_for_it(
    house: House, method: str, target: str, status: int
) -> None:
    before = len(house.registry.waiters)
    house.registry.expect("m")
    peer = house.send(method, target)
    exchange = house.exchanges[-1]
    await asyncio.sleep(0)
    assert (peer.statuses, house.registry.expected) == ([], ["m"])
    await house.serve("m")
    house.registry.settle("m")
    await house.until(lambda: exchange.done)

    assert (len(house.registry.waiters), peer.statuses, house.registry.expected) == (before, [status], [])


async def test_a_command_for_a_model_that_could_not_be_registered_is_told_why(house: House) -> None:
    house.registry.expect("m")
    peer = house.send("GET", "/models/m")
    await asyncio.sleep(0)
    house.registry.settle("m", "the archive is broken")
    await house.until(lambda: peer.statuses)

    message = json.loads(peer.bodies[0])["message"]
    assert (peer.statuses, message) == ([503], 'Model "m" could not be loaded at the start: the archive is broken')


async def test_what_was_begun_goes_on_when_its_client_leaves(house: House) -> None:
    house.put("m")
    house.engine.load_time = 5.0

    peer = house.send("POST", "/models?url=m&initial_workers=1", b"", "Accept: application/x-ndjson")
    await house.until(lambda: b'"stage": "loading"' in peer.transport.written)
    peer.leave()
    house.clock.advance(5.0)
    await asyncio.sleep(0)

    assert house.registry.find("m").pool.ready == 1


async def test_who_registered_is_told_of_workers_that_another_has_asked_for(house: House) -> None:
    house.put("m")
    house.engine.load_time = 1.0

    first = house.send("POST", "/models?url=m&initial_workers=1")
    await house.until(lambda: house.engine.workers)
    house.engine.load_time = 5.0
    await house.ask("PUT", "/models/m?min_worker=2")
    house.clock.advance(1.0)
    await house.until(lambda: first.answers)

    assert said((first.statuses[0], json.loads(first.bodies[0]))) == sentence("Workers scaling in progress...", 206)
