"""Requests that name no version go to the versions of the route, by every protocol of HTTP; others to their own."""

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.api.house import House
from tests.kit.protocols import PROTOCOLS as OF_EXTENSIONS
from tsctl.daemon.api.inference.urlencoded import SLICE
from tsctl.daemon.models.routing.route import Route, parse_route

OIP = b'{"inputs": []}'
JSON = "Content-Type: application/json"
PROTOCOLS = [
    pytest.param("/predictions/m", b"x", id="TorchServe"),
    pytest.param("/explanations/m", b"x", id="explanations"),
    pytest.param("/v1/models/m:predict", b"{}", id="KServe, version 1"),
    pytest.param("/v2/models/m/infer", OIP, id="the Open Inference Protocol"),
    pytest.param("/models/m/invoke", b"x", id="SageMaker, with a model"),
    pytest.param("/invocations", b"x", id="SageMaker, with the only model"),
    pytest.param("/m/predict", b"x", id="before TorchServe 0.1"),
    *(pytest.param(*each.predict("m"), id=each.name) for each in OF_EXTENSIONS),
]


async def routed(tmp_path: Path, weights: str = "1.0=70 2.0=30", sticky: str = "") -> House:
    """Serve versions 1.0 and 2.0 of a model with a route."""
    house = House(tmp_path, max_body=4 * 1024**2)
    for version in ("1.0", "2.0"):
        await house.serve("m", version)
    house.registry.routes.random.seed(1)
    house.registry.routes.put("m", parse_route(weights, sticky))
    return house


def answered(house: House) -> dict[str, int]:
    """Return how many requests each version had."""
    return {model.version: model.metrics.named.requests + model.metrics.unnamed.requests for model in house.registry}


@pytest.mark.parametrize(("target", "body"), PROTOCOLS)
async def test_every_protocol_is_routed(tmp_path: Path, target: str, body: bytes) -> None:
    house = await routed(tmp_path)
    draws = Random(1)
    wanted = Counter("1.0" if draws.random() < 0.7 else "2.0" for _ in range(12))
    assert len(wanted) == 2

    for _ in range(12):
        await house.ask("POST", target, body, JSON)

    assert answered(house) == wanted


@pytest.mark.parametrize(("target", "body"), PROTOCOLS)
async def test_a_header_names_the_version_by_every_protocol(tmp_path: Path, target: str, body: bytes) -> None:
    house = await routed(tmp_path, "1.0=1")

    await house.ask("POST", target, body, JSON, "X-Model-Version: 2.0")

    assert answered(house) == {"1.0": 0, "2.0": 1}
    assert house.registry.find("m", "2.0").metrics.named.requests == 1


async def test_a_header_names_the_version_without_a_route_too_and_each_time(tmp_path: Path) -> None:
    house = await routed(tmp_path)
    house.registry.routes.put("m", None)
    peer = house.send("POST", "/predictions/m", b"x", "X-Model-Version: 2.0")
    head = b"POST /predictions/m HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nX-Model-Version: 2.0\r\n\r\nx"

    for _ in range(3):
        await house.until(lambda: house.exchanges[-1].done)
        peer.send(head)
    status, _ = await house.tell("POST", "/predictions/m", b"x", "x-model-version: 9.0")

    assert (answered(house), status) == ({"1.0": 0, "2.0": 4}, 404)


async def test_the_path_wins_over_the_route_and_may_not_contradict_the_header(tmp_path: Path) -> None:
    house = await routed(tmp_path, "1.0=1")

    await house.ask("POST", "/predictions/m/2.0", b"x")
    await house.ask("POST", "/v2/models/m/versions/2.0/infer", OIP, JSON, "X-Model-Version: 2.0")
    status, document = await house.tell("POST", "/predictions/m/1.0", b"x", "X-Model-Version: 2.0")

    assert answered(house) == {"1.0": 0, "2.0": 2}
    assert (status, document["message"]) == (
        400, "The request names version 1.0, and its header x-model-version names 2.0.",
    )  # fmt: skip


async def test_a_client_stays_at_its_version(tmp_path: Path) -> None:
    house = await routed(tmp_path, "1.0=50 2.0=50", "header:x-user")
    versions: dict[str, set[str]] = {}

    for _ in range(3):
        for user in map(str, range(20)):
            before = answered(house)
            await house.ask("POST", "/predictions/m", b"x", f"X-User: {user}")
            versions.setdefault(user, set()).update({v for v, n in answered(house).items() if n > before[v]})

    assert all(len(each) == 1 for each in versions.values())
    assert {version for each in versions.values() for version in each} == {"1.0", "2.0"}


async def test_a_large_form_is_answered_by_the_version_that_was_chosen_when_it_came(tmp_path: Path) -> None:
    house = await routed(tmp_path, "1.0=50 2.0=50")
    large = b"a=" + b"%41" * (3 * SLICE // 3)

    for _ in range(12):
        peer = house.send("POST", "/predictions/m", large, "Content-Type: application/x-www-form-urlencoded")
        drawn = house.registry.routes.random.getstate()
        exchange = house.exchanges[-1]
        await house.until(partial(getattr, exchange, "done"))
        assert peer.answers
        assert house.registry.routes.random.getstate() == drawn, "the version was drawn again"

    assert min(answered(house).values()) > 0


async def test_others_share_the_requests_of_a_version_that_is_gone(tmp_path: Path) -> None:
    house = await routed(tmp_path, "1.0=1 3.0=99")

    for _ in range(3):
        await house.ask("POST", "/predictions/m", b"x")
    house.registry.routes.put("m", Route(weights=(("3.0", 1.0),)))
    await house.ask("POST", "/predictions/m", b"x")

    assert answered(house) == {"1.0": 4, "2.0": 0}


async def test_requests_wait_for_a_version_that_is_being_restored(tmp_path: Path) -> None:
    house = await routed(tmp_path, "3.0=1")
    house.registry.expect("m")

    peer = house.send("POST", "/predictions/m", b"x")
    assert not peer.answers
    await house.serve("m", "3.0")
    house.registry.settle("m")
    await house.until(lambda: bool(peer.answers))

    assert answered(house) == {"1.0": 0, "2.0": 0, "3.0": 1}


async def test_a_model_is_ready_when_each_version_with_a_weight_is(tmp_path: Path) -> None:
    house = await routed(tmp_path)
    house.registry.find("m", "2.0").scale(0, 0)
    house.clock.settle()

    targets = ("/ready", "/ready/m", *(target for each in OF_EXTENSIONS for target in each.ready))
    assert {(await house.ask("GET", target)).status for target in targets} == {503}
    house.registry.routes.put("m", parse_route("1.0=1"))

    assert {(await house.ask("GET", target)).status for target in targets} == {200}
