"""The Open Inference Protocol over HTTP, as its clients speak it, and its worst bodies."""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.kit.protocols import Body, Cases, Protocol, Sized
from tests.lab.benchmarks import schemas
from tsctl.daemon.api.inference.unpack import Unpacked, unpack_steps
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.json_text.syntax import check_syntax
from tsctl.daemon.extensions.oip import requests
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.messages import Request


def predict(model: str) -> tuple[str, bytes]:
    tensor = {"name": "a", "datatype": "FP32", "shape": [1], "data": [1]}
    return f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}).encode()


def describes(model: str) -> tuple[str, ...]:
    return f"/v2/models/{model}", f"/v2/models/{model}/ready", f"/v2/models/{model}/versions/1.0/stats"


def worst_bodies(size: int) -> Iterator[tuple[str, Body]]:
    return schemas.json_bodies(requests._WrittenRequest, size)


def cases_of(read: Callable[[bytes], Steps[Any]], size: int) -> Cases:
    for name, body in worst_bodies(size):
        yield read, name, body()


def plain(body: bytes) -> Steps[Any]:
    return check_syntax(memoryview(body))


def packed(body: bytes) -> Steps[Any]:
    request = Request("POST", "/", [("content-encoding", "gzip")], body, coding="gzip")
    yield from unpack_steps(request, 64 * 2**20, Unpacked(ReceiveBudget()))
    assert isinstance(request.body, bytes)
    return (yield from requests.parse_steps(request.body))


def packed_cases(size: int) -> Cases:
    for name, body in worst_bodies(size):
        yield packed, name, gzip.compress(body(), 1, mtime=0)


def sized() -> Iterator[Sized]:
    from tests.lab.benchmarks.bodies import DECLARED, over_http

    for model in (DECLARED, "sized"):
        for compressed in (False, True):
            target = f"/v2/models/{model}/infer"
            yield f"{target}{', gzip' if compressed else ''}", worst_bodies, partial(over_http, target, compressed)


def oversized(model: str, size: int) -> tuple[tuple[str, bytes, str], ...]:
    infer = f"/v2/models/{model}/infer"
    members = b",".join([b'{"name":"a"}'] * (size // 13))
    outputs = b'{"inputs":[],"outputs":[' + members + b"]}"
    parameters = b",".join(b'"%x":1' % number for number in range(size // 12))
    return (
        (infer, outputs, ""),
        (infer, gzip.compress(outputs), "Content-Encoding: gzip\r\n"),
        (infer, b'{"inputs":[' + members + b"]}", ""),
        (infer, b'{"inputs":[],"parameters":{' + parameters + b"}}", ""),
        (infer, b"[" * size, ""),
    )


PROTOCOL = Protocol(
    name="OIP", predict=predict, records=True, lists=("/v2/models/stats",), describes=describes,
    ready=("/v2/health/ready", "/v2/models/m/ready"), sized=sized, oversized=oversized,
    cases={
        "tensors": partial(cases_of, requests.parse_steps), "any JSON": partial(cases_of, plain),
        "/v2, gzip": packed_cases,
    },
)  # fmt: skip
