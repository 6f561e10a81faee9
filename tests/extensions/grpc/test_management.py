"""Management over gRPC: the answers are HTTP's, 0 is not there, and errors have their codes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc, grpc_house
from tests.kit.shelf import needs
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.extensions.grpc.heads import read_head
from tsctl.daemon.extensions.grpc.management import SERVICE, ManagementService, RepositoryService, relay
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import methods_of
from tsctl.daemon.http.router import Audience, join, resolved

pytestmark = pytest.mark.slow  # a real server and client
OIP = SERVICES[0]


@asynccontextmanager
async def managed(root: Path) -> AsyncIterator[GrpcHouse]:
    async with grpc_house(root) as made:
        house = made.house
        routes = join(
            management_routes(house.registry, house.registrar, None, local_paths=False),
            *(each.routes(Audience.MANAGERS) for each in house.services),
        )
        routes = resolved(routes)
        methods = methods_of(ManagementService(routes))
        methods |= methods_of(RepositoryService(OIP, made.parts, routes))
        made.calls._methods = {**made.calls._methods, **methods}
        yield made


async def test_a_model_is_described_as_over_http(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")
        request = message_class("org.pytorch.serve.grpc.management.DescribeModelRequest")(model_name="m")

        described = json.loads((await made.settled(made.call("DescribeModel", request, SERVICE))).msg)

        assert [each["modelName"] for each in described] == ["m"]


@needs("oip")
async def test_the_repository_lists_loads_and_unloads(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        model = await made.house.serve("m")

        async def repository(word: str, **fields: Any) -> Any:
            request = message_class(f"inference.Repository{word}Request")(**fields)
            return await made.settled(made.call(f"Repository{word}", request, OIP))

        [entry] = (await repository("Index")).models
        assert (entry.name, entry.version, entry.state) == ("m", "1.0", "READY")
        assert (await repository("ModelUnload", model_name="m")).isUnloaded
        assert model.pool.wanted == 0
        assert not (await repository("Index", ready=True)).models
        assert (await repository("ModelLoad", repository_name="m")).isLoaded  # as KServe's clients name it
        assert model.pool.ready == 1


async def test_a_call_without_its_route_over_http_is_not_found() -> None:
    head = read_head("/p.S/RepositoryIndex", (), None, 0.0)

    with pytest.raises(ResourceNotFound):
        await relay({}, "POST", ["v2", "repository", "index"], {}, head)


@needs("oip")
async def test_a_configuration_to_load_a_model_with_is_refused_as_over_http(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")
        load, unload = (message_class(f"inference.RepositoryModel{word}Request") for word in ("Load", "Unload"))
        configured = load(model_name="m", parameters={"config": {"string_param": "{}"}})
        alone = unload(model_name="m", parameters={"unload_dependents": {"bool_param": False}})

        with pytest.raises(grpc.aio.AioRpcError, match="has the parameter `config`; tsctl does not serve it"):
            await made.settled(made.call("RepositoryModelLoad", configured, OIP))
        assert (await made.settled(made.call("RepositoryModelUnload", alone, OIP))).isUnloaded
