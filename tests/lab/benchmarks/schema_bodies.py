"""Requests with the worst bodies of each schema (schemas.py): over HTTP plain and as gzip, and over gRPC."""

import gzip
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.kit.protocols import PROTOCOLS
from tests.lab.benchmarks import schemas
from tests.lab.benchmarks.bodies import ROOM, Asked, request
from tests.lab.benchmarks.schemas import Body

JSON = "application/json"
DECLARED = "x-int32"  # the model that takes tensors; "sized" takes any JSON
_ANY = 1024  # bytes: the names are those of bodies of any size
# Field 1 of the messages that name a model, where a filled one does not.
_MODELS = {True: b"\x0a\x07" + DECLARED.encode(), False: b"\x0a\x05sized"}
Bodies = Callable[[int], Iterator[tuple[str, Body]]]


def kinds() -> Iterator[tuple[str, Callable[[int], Asked]]]:
    """Yield the name of each body, and the function that makes a request of a size."""
    for protocol in PROTOCOLS:
        for what, bodies, make in protocol.sized():
            yield from _each(what, bodies, make)
    for method, descriptor in schemas.requests_of(schemas.SERVICES[:2]).items():
        service = next(each for each in schemas.SERVICES if each.rpartition(".")[2] == method.partition("/")[0])
        called = f"/{service}/{method.partition('/')[2]}"
        if not method.startswith("InferenceAPIsService/StreamPredictions") and "Stream" not in method:
            yield from _each(method, partial(schemas.messages, descriptor), partial(_over_grpc, called))
    called = "GRPCInferenceService/ModelInfer"
    yield from _each(f"{called} of", schemas.tensor_messages, partial(_over_grpc, f"/inference.{called}"))


def _each(what: str, bodies: Bodies, make: Callable[[str, bytes, int], Asked]) -> Iterator[Any]:
    for number, (name, _) in enumerate(bodies(_ANY)):
        yield f"{what} {name}", partial(_nth, f"{what} {name}", bodies, make, number)


def _nth(name: str, bodies: Bodies, make: Callable[[str, bytes, int], Asked], number: int, size: int) -> Asked:
    return make(name, next(body for at, (_, body) in enumerate(bodies(size - ROOM)) if at == number)(), size)


def over_http(target: str, packed: bool, name: str, body: bytes, size: int) -> Asked:
    """Return a request with a body, as gzip if `packed`; it is of `size` bytes, or more."""
    sent = gzip.compress(body, 1, mtime=0) if packed else body
    asked = request(name, sent, JSON, target=target, status=0)
    if packed:
        asked.head = asked.head[:-2] + b"Content-Encoding: gzip\r\n\r\n"
    asked.size = max(size, len(sent))
    return asked


def _over_grpc(method: str, name: str, body: bytes, size: int) -> Asked:
    return Asked(name, b"", [_MODELS["GRPCInferenceService" in method] + body], size, status=0, method=method)


KINDS = dict(kinds())
