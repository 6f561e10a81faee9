"""Predictions, from bytes to bytes: each request is answered, in JSON if it fails, never by a bug.

One model with a stub for a worker; the bytes are all that a client sends.
"""

import json
import re

from tests.http.peer import Server, post
from tests.kit.build import make_model
from tests.kit.protocols import PROTOCOLS
from tests.kit.stub import StubEngine
from tests.lab.fuzz.targets import Target
from tests.lab.fuzz.targets.receiver import LIMITS, WORDS
from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.router import Router, join
from tsctl.daemon.models.registry import Registry

_BUG = b"The daemon failed"  # what a client is told of an exception that nobody expected
_OWN = re.compile(rb'(?i)x-request-id: [^\r]*|cmpl-[^"]*|"created": *[0-9]*')  # different for each answer
ANSWERING = [each for each in PROTOCOLS if each.routes is not None]
_PATIENCE = 5.0  # seconds of the fake clock


def check(data: bytes) -> object:
    def application(exchange: Exchange) -> None:
        router(exchange)

    server = Server(application, LIMITS)
    registry = Registry()
    model = make_model(StubEngine(server.clock), server.clock, max_delay=0.0, client_timeout=1.0)
    registry.add(model)
    model.scale(1, 1)
    server.clock.settle()
    router = Router(join(*(each.routes(registry) for each in ANSWERING if each.routes), inference_routes(registry)))
    peer = server.connect()
    peer.send(data)
    server.clock.advance(_PATIENCE)

    assert all(exchange.done for exchange in server.exchanges), "a request was not answered"
    assert len(server.log) >= len(server.exchanges)
    written = bytes(peer.transport.written)
    assert _BUG not in written or _BUG in data, written
    if b"HEAD" not in data:  # whose answers have a length and no body
        for answer in peer.answers:
            if answer.status >= 400:
                document = json.loads(answer.body)
                error = document.get("error")
                told = error.get("message") if isinstance(error, dict) else error  # in the words of the protocol
                keys = document.keys() - {"error"} if told == document.get("message") else document.keys()
                assert keys == {"code", "type", "message"} or keys == {"status"}, document
    assert model.waiting == 0 and model.running == 0
    return _OWN.sub(b"", written), [(target, status) for target, status, _ in server.log]


def _ask(target: str, body: bytes = b"", *headers: str) -> bytes:
    return post(body, *headers).replace(b"POST /", f"POST {target}".encode(), 1)


_FORM = "Content-Type: application/x-www-form-urlencoded"
_PART = b'--b\r\nContent-Disposition: form-data; name="model_name"\r\n\r\nm\r\n--b--\r\n'
TARGETS = (
    "/predictions/m", "/predictions/m/1.0/a%2Fb?c=d", "/explanations/m", "/v1/models/m:predict", "/v1/models/m:explain",
    "/v2/models/m/infer", "/v2/models/m/explain", "/models/m/invoke?a=b&a=c", "/invocations",
    "/invocations?model_name=m",
    "/ping", "/ready/m/1.0", "/live", "/api-description", "/predictions/nobody", "/%ff/%", "/", "http://a/predictions/m",
    *(target for each in ANSWERING for target in (each.predict("m")[0], *each.lists)),
)  # fmt: skip
TARGET = Target(
    check,
    [
        *(_ask(target, b"abc") for target in TARGETS),
        *(_ask(target).replace(b"POST", b"OPTIONS", 1) for target in TARGETS[:2]),
        _ask("/invocations", b"model_name=m&x=%20", _FORM),
        _ask("/invocations", _PART, "Content-Type: multipart/form-data; boundary=b"),
        _ask(
            "/predictions/m",
            b"{}",
            "Content-Type: application/json",
            "x-request-deadline-ms: 5",
            "x-request-priority: low",
        ),
        *(_ask(*each.predict("m")) for each in ANSWERING),
        _ask("/predictions/m", b"a=%", _FORM) + _ask("/predictions/m", b"a", "x-request-deadline-ms: 0"),
        _ask("/predictions/m").replace(b"POST", b"GET") + _ask("/ping").replace(b"POST", b"HEAD"),
    ],
    [*WORDS, *(f"{target} HTTP/1.1\r\n".encode() for target in TARGETS), b"%2F", b"?model_name=", b":predict"],
)
