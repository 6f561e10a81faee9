"""Management over gRPC: the answers are HTTP's, 0 is not there, and errors have their codes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc, grpc_house
from tsctl.daemon.api.management.routes import management_routes
from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.extension import Audience
from tsctl.daemon.extensions.grpc.heads import read_head
from tsctl.daemon.extensions.grpc.management.relay import relay
from tsctl.daemon.extensions.grpc.management.torchserve import SERVICE, ManagementService, RepositoryService
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import methods_of
from tsctl.daemon.extensions.grpc.waiting.awaited import AwaitedModels
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.router import join, resolved
from tsctl.daemon.server.extensions import EXTENSIONS

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
        models = AwaitedModels(house.registry, 2, ReceiveBudget())
        methods |= methods_of(RepositoryService(OIP, house.registry, lambda: True, models, made.arrivals, routes))
        made.calls._methods = {**made.calls._methods, **methods}
        yield made


async def ask(made: GrpcHouse, name: str, **fields: Any) -> str:
    request = message_class(f"org.pytorch.serve.grpc.management.{name}Request")(**fields)
    answer: str = (await made.settled(made.call(name, request, SERVICE))).msg
    return answer


async def code_of(made: GrpcHouse, name: str, **fields: Any) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await ask(made, name, **fields)
    return raised.value.code().name, raised.value.details()


async def test_a_model_is_described_and_listed_as_over_http(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")

        described = json.loads(await ask(made, "DescribeModel", model_name="m"))
        listed = json.loads(await ask(made, "ListModels"))

        assert [each["modelName"] for each in described] == ["m"]
        assert [each["modelName"] for each in listed["models"]] == ["m"]
        assert json.loads(await ask(made, "ListModels", limit=1))["nextPageToken"] == "1"


async def test_workers_are_scaled_and_0_is_1(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        model = await made.house.serve("m")

        assert await ask(made, "ScaleWorker", model_name="m", min_worker=3) == "Processing worker updates..."
        assert model.pool.wanted == 3
        said = await ask(made, "ScaleWorker", model_name="m", model_version="1.0", synchronous=True)
        assert said == "Workers scaled to 1 for model: m, version: 1.0"
        assert model.pool.wanted == 1


async def test_a_default_is_set_and_a_model_unregistered(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")
        await made.house.serve("m", version="2.0")

        said = await ask(made, "SetDefault", model_name="m", model_version="2.0")
        assert said == 'Default version successfully updated for model "m" to "2.0"'
        assert await ask(made, "UnregisterModel", model_name="m", model_version="1.0") == 'Model "m" unregistered'
        assert [model.version for model in made.house.registry.versions("m")] == ["2.0"]


async def test_an_error_has_its_code_and_its_sentence(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")

        assert await code_of(made, "DescribeModel", model_name="none") == ("NOT_FOUND", "Model not found: none")
        assert (await code_of(made, "DescribeModel", model_name="m", model_version="9"))[0] == "NOT_FOUND"
        assert await code_of(made, "RegisterModel") == ("INVALID_ARGUMENT", "Parameter url is required.")
        assert (await code_of(made, "RegisterModel", url="none.mar"))[0] == "NOT_FOUND"
        code, sentence = await code_of(made, "ScaleWorker", model_name="m", min_worker=3, max_worker=2)
        assert (code, sentence) == ("INVALID_ARGUMENT", "max_worker cannot be less than min_worker.")


async def test_a_name_is_no_path(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")

        assert (await code_of(made, "DescribeModel", model_name="m/1.0?x"))[0] == "NOT_FOUND"


@pytest.mark.skipif(not any(each.name == "oip" for each in EXTENSIONS), reason="its routes are those over HTTP")
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


async def test_at_an_address_of_predictions_the_repository_is_refused(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")
        request = message_class("inference.RepositoryModelUnloadRequest")(model_name="m")

        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await made.settled(made.call("RepositoryModelUnload", request, OIP))

        assert raised.value.code().name == "PERMISSION_DENIED"
        assert "--grpc-management-address" in raised.value.details()


async def test_a_configuration_to_load_a_model_with_is_refused_as_over_http(tmp_path: Path) -> None:
    async with managed(tmp_path) as made:
        await made.house.serve("m")
        load, unload = (message_class(f"inference.RepositoryModel{word}Request") for word in ("Load", "Unload"))
        configured = load(model_name="m", parameters={"config": {"string_param": "{}"}})
        alone = unload(model_name="m", parameters={"unload_dependents": {"bool_param": False}})

        with pytest.raises(grpc.aio.AioRpcError, match="has the parameter `config`; tsctl does not serve it"):
            await made.settled(made.call("RepositoryModelLoad", configured, OIP))
        assert (await made.settled(made.call("RepositoryModelUnload", alone, OIP))).isUnloaded
