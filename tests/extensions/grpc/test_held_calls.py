"""A call for a model that is listed waits until it is registered, or could not be."""

import asyncio

import pytest

from tests.api.house import House
from tsctl.daemon.core.errors import BadRequest, Loading, ModelNotFound, NoReadyWorker
from tsctl.daemon.extensions.grpc.heads import read_head
from tsctl.daemon.extensions.grpc.waiting.held_calls import AwaitedModels
from tsctl.daemon.http.bounds.receiving import NoRoom, ReceiveBudget
from tsctl.daemon.http.deadline_header import HEADER
from tsctl.daemon.models.version import ModelVersion

HEAD = read_head("/a.B/C", (), None, 0.0)


async def waiting(models: AwaitedModels, name: str = "m", size: int = 0) -> asyncio.Task[ModelVersion]:
    """Begin to look for a model, for a call with a message of this size."""
    finding = asyncio.ensure_future(models.find(name, None, HEAD, lambda: size))
    await asyncio.sleep(0)
    return finding


async def test_a_model_that_could_not_be_registered_is_told_with_its_reason(house: House) -> None:
    house.registry.expect("m")
    finding = await waiting(AwaitedModels(house.registry, 2, ReceiveBudget()))

    house.registry.settle("m", "the archive is broken")

    with pytest.raises(NoReadyWorker, match="the archive is broken"):
        await finding


async def test_a_call_whose_deadline_is_invalid_waits_for_no_model(house: House) -> None:
    house.registry.expect("m")
    head = read_head("/a.B/C", ((HEADER, "soon"),), None, 0.0)

    with pytest.raises(BadRequest, match="soon"):
        await AwaitedModels(house.registry, 2, ReceiveBudget()).find("m", None, head, lambda: 0)


async def test_another_models_end_of_loading_changes_nothing(house: House) -> None:
    for name in ("m", "n"):
        house.registry.expect(name)
    finding = await waiting(AwaitedModels(house.registry, 2, ReceiveBudget()))

    house.registry.settle("n")
    await asyncio.sleep(0)
    assert not finding.done()
    house.registry.settle("m")

    with pytest.raises(ModelNotFound):
        await finding


async def test_only_so_many_calls_wait_and_who_leaves_makes_room(house: House) -> None:
    models = AwaitedModels(house.registry, 1, ReceiveBudget())
    house.registry.expect("m")
    first = await waiting(models)

    with pytest.raises(Loading, match="being registered"):
        await models.find("m", None, HEAD, lambda: 0)
    first.cancel()
    await asyncio.wait([first])
    second = await waiting(models)

    assert not second.done()
    second.cancel()


async def test_the_messages_of_waiting_calls_count_as_bodies_that_are_being_received(house: House) -> None:
    receiving = ReceiveBudget(100)
    models = AwaitedModels(house.registry, 9, receiving)
    house.registry.expect("m")
    first = await waiting(models, "m", 60)
    assert receiving.used == 60

    with pytest.raises(NoRoom, match="100 bytes together"):
        await models.find("m", None, HEAD, lambda: 60)
    assert receiving.used == 60
    model = await house.serve("m")
    house.registry.settle("m")

    assert await first is model
    assert receiving.used == 0
    house.registry.expect("n")
    left = await waiting(models, "n", 60)
    assert receiving.used == 60
    left.cancel()
    await asyncio.wait([left])
    assert receiving.used == 0, "a call that is cancelled counts no more"


async def test_a_call_waits_while_the_first_worker_loads(house: House) -> None:
    house.engine.load_time = 5.0
    model = await house.serve("m")
    before = dict(model.listeners)
    finding = await waiting(AwaitedModels(house.registry, 2, ReceiveBudget()))
    assert not finding.done()

    house.clock.advance(6.0)

    assert await finding is model
    assert model.listeners == before
