"""Clients over gRPC in the storm of tests/lab/chaos: honest and hostile ones."""

import contextlib
import random
import socket
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from tests.e2e.served import free_address
from tests.extensions.grpc.calls import OPEN_INFERENCE, TORCHSERVE, Channel
from tests.extensions.grpc.http2 import DATA, ENDS_THE_LOOP, frame, grpc_call
from tests.lab.harness.clients import some_words
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.protocol_clients import ProtocolClients
from tests.lab.harness.verdict import Asked, Broken, Kind, Rules, Told, judge
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import load_grpc

CALLERS = ("steady", "once", "steady")  # the models that honest clients ask
AGAIN = 5  # times that one of them may be told to ask again, every 0.1 s, while a server is replaced
PATHS = "hostile: gRPC, a path that is no text"
# Seconds between two calls whose path is no text, which end grpc's own loop: it is begun again with growing pauses.
BETWEEN_PATHS = 40.0
_PATIENCE = 2.0  # seconds that hostile clients wait for an answer
_LARGE = 2 * 1024 * 1024  # bytes of what has too many members
_STATUSES = {"RESOURCE_EXHAUSTED": 507, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504, "INTERNAL": 500}


class GrpcClients(ProtocolClients):
    """Clients of both services."""

    def __init__(self) -> None:
        self.address = free_address()
        self.options = ("--grpc-address", self.address)

    def ask(self, crowd: Crowd, rules: Mapping[str, Rules]) -> None:
        for model in CALLERS:
            crowd.add(self._call_in_turn, crowd, model, rules[model])

    def _call_in_turn(self, crowd: Crowd, model: str, rules: Rules, chance: random.Random) -> None:
        """One call after the other, on one channel."""
        ledger = crowd.ledger
        with contextlib.closing(Channel(self.address, TORCHSERVE)) as channel:
            while not crowd.over.is_set():
                asked = ledger.make(model, rules, some_words(chance))
                told = told_by_call(channel, model, asked)
                try:
                    kind, pid = (Kind.AGAIN, 0) if told is None else judge(asked, told, ledger.killed)
                    ledger.ended(model, asked, kind, pid)
                    if told is None:
                        crowd.over.wait(0.1)  # as clients of gRPC do, before they ask again
                except Broken as error:
                    ledger.broken.append(f"{model}, over gRPC: {error}")

    def most_cut_off(self, ledger: Ledger) -> int:
        return AGAIN * len(CALLERS) * (ledger.done["daemon upgraded"] + ledger.done[PATHS])

    def harm(self, crowd: Crowd, prey: str) -> None:
        crowd.add(self._call_oversized, crowd, prey)
        crowd.add(self._end_loop, crowd)

    def _call_oversized(self, crowd: Crowd, prey: str, chance: random.Random) -> None:
        """Call with what is oversized, by a client that keeps to HTTP/2, and cancel some calls."""
        grpc = load_grpc()
        with grpc.insecure_channel(self.address) as channel:
            while not crowd.over.wait(chance.uniform(0.0, 0.3)):
                method, messages = chance.choice(list(oversized_calls(prey).items()))
                call = channel.unary_unary(method).future(chance.choice(messages), timeout=_PATIENCE)
                if chance.random() < 0.3:
                    crowd.over.wait(chance.uniform(0.0, 0.02))
                    call.cancel()
                with contextlib.suppress(grpc.FutureCancelledError):
                    error = call.exception()
                    if error is not None and error.code() is grpc.StatusCode.UNKNOWN:
                        crowd.ledger.broken.append(f"a hostile call of {method} met a bug: {error.details()}")
                crowd.ledger.count("hostile: gRPC, oversized calls")

    def _end_loop(self, crowd: Crowd, chance: random.Random) -> None:
        """Call a path that is no text: the library's own loop ends with an error then."""
        while not crowd.over.wait(chance.uniform(0.5, 1.0) * BETWEEN_PATHS):
            end_loop(self.address)
            crowd.ledger.count(PATHS)

    def well_formed(self, prey: str) -> Mapping[str, Callable[[random.Random], bytes]]:
        return {"gRPC, TorchServe": partial(_torchserve_call, prey), "gRPC, OIP": partial(_inference_call, prey)}

    def oversized(self, message: bytes) -> bytes:
        start = message.rindex(b"\x00\x00\x00\x00")  # of one that says to be of 4 GB
        return message[:start] + frame(DATA, 0, 1, b"\x00\xff\xff\xff\xff" + bytes(100))


def told_by_call(channel: Channel, model: str, asked: Asked) -> Told | None:
    """Call, and return the answer that HTTP would have given; None where the server was replaced meanwhile."""
    status, body, _ = channel.ask(model, asked.body, [("x-request-id", asked.id)])
    if status == "OK":
        # A call cannot say that it is the last that a replaced daemon answers, so each may be.
        return Told(200, {"x-request-id": asked.id, "connection": "close"}, body)
    if status in ("UNAVAILABLE", "CANCELLED") and asked.id.encode() not in body:
        return None
    # Over HTTP the end of a worker is 507, and over gRPC no quota of the caller's.
    code = 507 if b"The worker died" in body else _STATUSES.get(status, 400)
    return Told(code, {"x-request-id": asked.id}, f"{status}: ".encode() + body)


@cache
def oversized_calls(prey: str) -> Mapping[str, tuple[bytes, ...]]:
    """Return messages of many members, for a client that minds HTTP/2's windows: method → messages."""
    infer, predictions = f"/{OPEN_INFERENCE}", f"/{TORCHSERVE}"
    name = b"\x0a%c%b" % (len(prey), prey.encode())
    return {
        infer: (name + b"\x32\x00" * (_LARGE // 2), name + b"\x2a\x00" * (_LARGE // 2)),  # outputs, inputs
        predictions: (name + b"".join(b"\x1a\x0a\x0a\x06%06x\x12\x00" % n for n in range(_LARGE // 12)),),
    }


def end_loop(address: str) -> None:
    """Send the bytes that end the loop of grpc's server."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), _PATIENCE) as peer:
        peer.sendall(ENDS_THE_LOOP)
        peer.recv(1 << 16)


def _torchserve_call(prey: str, chance: random.Random) -> bytes:
    request: Any = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")(model_name=prey)
    request.input["body"] = chance.randbytes(40)
    return grpc_call(f"/{TORCHSERVE}".encode(), request.SerializeToString())


def _inference_call(prey: str, chance: random.Random) -> bytes:
    request: Any = message_class("inference.ModelInferRequest")(model_name=prey)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2])
    tensor.contents.fp32_contents.extend([chance.random(), 1.0])
    return grpc_call(f"/{OPEN_INFERENCE}".encode(), request.SerializeToString())


CLIENTS = GrpcClients
