"""Whether a model, or all of them, can answer: `/ready`, `/live`, and KServe's question."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, sentence
from tests.kit.protocols import PROTOCOLS
from tsctl.daemon.workers.engine import LoadFailure

READY, NOT_READY = sentence("Ready"), sentence("Not ready", 503)
NO_MODEL = error(404, "ModelNotFoundException", "Model not found: x")
NO_RESOURCE = error(404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document.")
NO_METHOD = error(405, "MethodNotAllowedException", "Requested method is not allowed, please refer to API document.")


def tell(house: House, target: str, method: str = "GET") -> tuple[int, Any]:
    peer = house.send(method, target)
    return peer.statuses[0], json.loads(peer.bodies[0])


def serve(house: House, name: str = "m", version: str = "1.0", workers: int = 1) -> None:
    asyncio.run(house.serve(name, version, workers))


def nothing(house: House) -> None: ...


def one_ready(house: House) -> None:
    serve(house)


def one_of_two_ready(house: House) -> None:
    serve(house)
    serve(house, "n", workers=0)


def another_version_without_workers(house: House) -> None:
    serve(house)
    serve(house, version="2.0", workers=0)


def loading(house: House) -> None:
    house.engine.load_time = 100.0
    serve(house)


def failed(house: House) -> None:
    house.engine.load_failure = LoadFailure("ValueError: no")
    serve(house)


def stopping(house: House) -> None:
    serve(house)
    house.registry.find("m").stop()


@pytest.mark.parametrize(
    ("arrange", "answer"),
    [
        pytest.param(nothing, READY, id="without models"),
        pytest.param(one_ready, READY, id="with one that is"),
        pytest.param(one_of_two_ready, NOT_READY, id="not with one that is not"),
        pytest.param(another_version_without_workers, READY, id="whatever another version is"),
        pytest.param(loading, NOT_READY, id="not while it loads"),
        pytest.param(failed, NOT_READY, id="not after it failed"),
        pytest.param(stopping, NOT_READY, id="not while it stops"),
    ],
)
def test_all_are_ready(house: House, arrange: Callable[[House], None], answer: tuple[int, Any]) -> None:
    arrange(house)

    assert tell(house, "/ready") == answer


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/ready/m", READY), ("/ready/m/1.0", READY), ("/ready/m/2.0", NOT_READY), ("/ready/n", NOT_READY),
        ("/ready/x", NO_MODEL), ("/ready/m/1.0/x", NO_RESOURCE), ("/live", sentence("Live")), ("/live/m", NO_RESOURCE),
    ],
)  # fmt: skip
def test_one_is_ready(house: House, target: str, answer: tuple[int, Any]) -> None:
    another_version_without_workers(house)
    serve(house, "n", workers=0)

    assert tell(house, target) == answer


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        pytest.param("GET", "/v1/models/m", (200, {"name": "m", "ready": True}), id="one that is"),
        pytest.param("GET", "/v1/models/n", (200, {"name": "n", "ready": False}), id="one that is not"),
        pytest.param("GET", "/v1/models/x", NO_MODEL, id="one that is unknown"),
        pytest.param("GET", "/v1/models/m/1.0", NO_RESOURCE, id="a version, of which KServe knows nothing"),
        pytest.param("GET", "/v1/x/m", NO_RESOURCE, id="something else"),
        pytest.param("PUT", "/v1/models/m", NO_METHOD, id="another method"),
    ],
)
def test_what_kserve_asks(house: House, method: str, target: str, answer: tuple[int, Any]) -> None:
    serve(house)
    serve(house, "n", workers=0)

    assert tell(house, target, method) == answer
    house.serve_predictions_alone()
    assert tell(house, target, method) == answer


def test_nobody_is_told_ready_before_all_that_is_listed_has_been_registered(house: House) -> None:
    serve(house)
    house.started = False

    assert tell(house, "/ready") == NOT_READY
    assert tell(house, "/ready/m") == READY

    house.started = True
    assert tell(house, "/ready") == READY


@pytest.mark.parametrize("target", ["/ready", *(each.ready[0] for each in PROTOCOLS if each.ready)])
@pytest.mark.parametrize("ready_when_full", ["true", "false"])
async def test_a_full_queue_ends_readiness_where_that_is_asked_for(
    tmp_path: Path, target: str, ready_when_full: str
) -> None:
    house = House(tmp_path, ready_when_full=ready_when_full)
    house.engine.batch_time = lambda size: 10.0
    await house.serve("m", "1.0", 1)
    statuses = []
    for _ in range(3):  # one that runs, and two that wait, which is all that the queue takes
        house.send("POST", "/predictions/m", b"x")
        statuses.append(house.send("GET", target).statuses[0])
    assert house.send("POST", "/predictions/m", b"x").statuses == [503]

    house.clock.advance(10.0)
    statuses.append(house.send("GET", target).statuses[0])

    assert statuses == [200, 200, 200 if ready_when_full == "true" else 503, 200]
    for told in ("/ready/m", *(target for each in PROTOCOLS for target in each.ready[1:])):
        assert house.send("GET", told).statuses == [200]
