"""Management over gRPC: the answers are HTTP's, 0 is not there, and errors have their codes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc_house
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


async def test_a_call_without_its_route_over_http_is_not_found() -> None:
    head = read_head("/p.S/RepositoryIndex", (), None, 0.0)

    with pytest.raises(ResourceNotFound):
        await relay({}, "POST", ["v2", "repository", "index"], {}, head)
