"""Calls with the worst messages of each schema: what gRPC adds to tests/lab/benchmarks/callbacks.py."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc

from tests.e2e.served import Served
from tests.extensions.grpc import schemas
from tests.kit.protocols import Sized
from tests.lab.benchmarks.bodies import DECLARED, Asked

OPTIONS = ("--grpc-address", "127.0.0.1:0")
_STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT: 400, grpc.StatusCode.RESOURCE_EXHAUSTED: 413, grpc.StatusCode.NOT_FOUND: 400,
    grpc.StatusCode.PERMISSION_DENIED: 400, grpc.StatusCode.INTERNAL: 500, grpc.StatusCode.UNAVAILABLE: 503,
}  # fmt: skip


def kinds() -> Iterator[Sized]:
    for method, descriptor in schemas.requests_of(schemas.SERVICES[:2]).items():
        service = next(each for each in schemas.SERVICES if each.rpartition(".")[2] == method.partition("/")[0])
        called = f"/{service}/{method.partition('/')[2]}"
        if "Stream" not in method:
            yield method, partial(schemas.messages, descriptor), partial(_asked, called)
    called = "GRPCInferenceService/ModelInfer"
    yield f"{called} of", schemas.tensor_messages, partial(_asked, f"/inference.{called}")


def _asked(method: str, body: bytes, size: int) -> Asked:
    model = DECLARED if "GRPCInferenceService" in method else "sized"
    message = b"\x0a%c%b" % (len(model), model.encode()) + body  # field 1 names it, where a filled one does not
    return Asked(b"", message, size, status=0, send=partial(_call, method, message))


def _call(method: str, message: bytes, served: Served) -> int:
    """Make a call; return the HTTP status that its code stands for."""
    address = served.status["grpcAddresses"][0].partition("://")[2]
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(method)(message, timeout=600)
        except grpc.RpcError as error:
            found: Any = error
            return _STATUSES[found.code()]
    return 200
