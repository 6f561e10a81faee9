"""Calls that name no version go to the versions of the route, of both services; metadata names another one."""

import contextlib
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.api.house import House
from tests.extensions.grpc.client import INFERENCE, GrpcHouse, grpc, grpc_house, prediction
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.models.routing.route import parse_route


def asked(owner: str) -> tuple[str, Any]:
    """Return the call and the request of a prediction that names no version."""
    if owner == INFERENCE:
        return "Predictions", prediction("m", data=b"x")
    return "ModelInfer", message_class(f"{owner.rpartition('.')[0]}.ModelInferRequest")(model_name="m")


def answered(house: House) -> dict[str, int]:
    return {model.version: model.metrics.named.requests + model.metrics.unnamed.requests for model in house.registry}


async def routed(served: GrpcHouse, weights: str, sticky: str = "") -> None:
    for version in ("1.0", "2.0"):
        await served.house.serve("m", version)
    served.house.registry.routes.random.seed(1)
    served.house.registry.routes.put("m", parse_route(weights, sticky))


async def ask(served: GrpcHouse, owner: str, *metadata: tuple[str, str]) -> None:
    """Make a call; the stub worker's answer is none of the Open Inference Protocol, and that does not matter here."""
    name, request = asked(owner)
    with contextlib.suppress(grpc.aio.AioRpcError):
        await served.settled(served.call(name, request, owner, metadata=metadata))


@pytest.mark.parametrize("owner", [INFERENCE, *SERVICES])
async def test_calls_are_routed_and_metadata_names_a_version(tmp_path: Path, owner: str) -> None:
    async with grpc_house(tmp_path) as served:
        await routed(served, "1.0=70 2.0=30")
        draws = Random(1)
        wanted = Counter("1.0" if draws.random() < 0.7 else "2.0" for _ in range(12))

        for _ in range(12):
            await ask(served, owner)
        assert answered(served.house) == wanted
        await ask(served, owner, ("x-model-version", "2.0"))

        assert answered(served.house) == wanted + Counter({"2.0": 1})
