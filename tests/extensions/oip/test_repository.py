"""The model repository of the Open Inference Protocol: for those who may manage models."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.extensions.oip.routes import oip_routes
from tsctl.daemon.http.router import Router


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_the_index_names_every_version_and_whether_it_is_ready(house: House) -> None:
    await house.serve("a")
    await house.serve("b", workers=0)

    assert await house.tell("POST", "/v2/repository/index") == (
        200,
        [
            {"name": "a", "version": "1.0", "state": "READY", "reason": ""},
            {"name": "b", "version": "1.0", "state": "UNAVAILABLE", "reason": "no workers"},
        ],
    )


async def test_the_index_may_name_ready_versions_only(house: House) -> None:
    await house.serve("a")
    await house.serve("b", workers=0)

    _, entries = await house.tell("POST", "/v2/repository/index", b'{"ready": true}')

    assert [each["name"] for each in entries] == ["a"]


@pytest.mark.parametrize("body", [b"[]", b'{"ready": 1}', b"{", b'{"reddy": true}'])
async def test_another_body_of_the_index_is_refused(house: House, body: bytes) -> None:
    status, document = await house.tell("POST", "/v2/repository/index", body)

    assert status == 400
    assert document["error"] == document["message"]


async def test_unloading_ends_the_workers_and_loading_starts_as_many_as_are_configured(house: House) -> None:
    serving = asyncio.ensure_future(house.serve("m", workers=2, config="minWorkers: 2"))
    await house.until(serving.done)  # the registration waits for its workers
    model = await serving

    assert await house.tell("POST", "/v2/repository/models/m/unload") == (200, {"name": "m", "state": "UNAVAILABLE"})
    assert model.pool.wanted == 0
    assert await house.tell("POST", "/v2/repository/models/m/load") == (200, {"name": "m", "state": "READY"})
    assert model.pool.ready == 2


async def test_loading_again_changes_nothing(house: House) -> None:
    model = await house.serve("m", workers=3)

    assert (await house.tell("POST", "/v2/repository/models/m/load"))[0] == 200
    assert model.pool.ready == 3


@pytest.mark.parametrize("action", ["load", "unload"])
async def test_an_unknown_model_is_named(house: House, action: str) -> None:
    status, document = await house.tell("POST", f"/v2/repository/models/no/{action}")

    assert (status, document["error"]) == (404, "Model not found: no")


async def test_an_address_for_predictions_alone_has_no_repository(house: House) -> None:
    await house.serve("m")
    house._router = Router(oip_routes(house.registry, lambda: True, house._predictions["v2"]))

    status, document = await house.tell("POST", "/v2/repository/index")

    assert (status, document["error"]) == (
        404, "The model repository is part of management: ask at `--management-address`, or the control socket.",
    )  # fmt: skip
    assert (await house.tell("POST", "/v2/repository/models/m/unload"))[0] == 404


async def test_the_repository_is_asked_with_post(house: House) -> None:
    assert (await house.tell("GET", "/v2/repository/index"))[0] == 405


async def test_triton_clients_unload_with_a_parameter_that_means_nothing_here(house: House) -> None:
    await house.serve("m")

    body = b'{"parameters": {"unload_dependents": true}}'
    assert (await house.tell("POST", "/v2/repository/models/m/unload", body))[0] == 200


@pytest.mark.parametrize("name", ["config", "file:1/model.onnx", "unload_dependents"])
async def test_what_a_client_would_load_a_model_with_is_refused_by_its_name(house: House, name: str) -> None:
    model = await house.serve("m")

    status, document = await house.tell(
        "POST", "/v2/repository/models/m/load", b'{"parameters": {"%b": "{}"}}' % name.encode()
    )

    assert (status, model.pool.ready) == (400, 1)
    assert f"The request to load m has the parameter `{name}`; tsctl does not serve it" in document["error"]


async def test_a_body_that_is_no_request_to_load_is_refused(house: House) -> None:
    await house.serve("m")

    for body in (b"[]", b'{"parameters": 1}'):
        assert (await house.tell("POST", "/v2/repository/models/m/load", body))[0] == 400
