"""Clients that mean harm, on every protocol: their requests are oversized, cut, cancelled, half-closed or malformed.

Nothing is held against an answer to them but that it is no bug's; their harm would show at the honest clients beside
them, in the daemon's log and in its memory.
"""

import contextlib
import gzip
import random
import socket
import struct
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial
from typing import Any, NamedTuple

from tests.kit.http2 import DATA, ENDS_THE_LOOP, frame, grpc_call
from tests.kit.protocols import PROTOCOLS, Protocol
from tests.lab.harness.calls import OPEN_INFERENCE, TORCHSERVE
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tsctl.daemon.api.grpc.protos.messages import message_class
from tsctl.daemon.api.grpc.server import load_grpc

PREY = "prey"  # the model that they ask: it answers, however it is asked
PATHS = "hostile: gRPC, a path that is no text"
THREADS = 6
_PATIENCE = 2.0  # seconds that they wait for an answer
_LARGE = 2 * 1024 * 1024  # bytes of what has too many members
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER
# Seconds between two calls whose path is no text, which end grpc's own loop: it is begun again with growing pauses.
_BETWEEN_PATHS = 40.0


class Way(StrEnum):
    OVERSIZED = "oversized"
    CUT = "cut off"
    CANCELLED = "cancelled"
    HALF_CLOSED = "half-closed"
    MALFORMED = "malformed"


class Attack(NamedTuple):
    """A request, byte for byte, and how its client behaves."""

    protocol: str
    way: Way
    message: bytes


def _http(path: str, body: bytes, kind: str = "application/json", further: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: chaos\r\nContent-Type: {kind}\r\n{further}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _form(chance: random.Random) -> bytes:
    parts = b"".join(
        b'--edge\r\nContent-Disposition: form-data; name="part%d"\r\n\r\n%b\r\n' % (number, chance.randbytes(40))
        for number in range(3)
    )
    return _http(f"/predictions/{PREY}", parts + b"--edge--\r\n", "multipart/form-data; boundary=edge")


def _prediction(protocol: Protocol, _chance: random.Random) -> bytes:
    return _http(*protocol.predict(PREY))


def _torchserve_call(chance: random.Random) -> bytes:
    request: Any = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")(model_name=PREY)
    request.input["body"] = chance.randbytes(40)
    return grpc_call(f"/{TORCHSERVE}".encode(), request.SerializeToString())


def _inference_call(chance: random.Random) -> bytes:
    request: Any = message_class("inference.ModelInferRequest")(model_name=PREY)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2])
    tensor.contents.fp32_contents.extend([chance.random(), 1.0])
    return grpc_call(f"/{OPEN_INFERENCE}".encode(), request.SerializeToString())


WELL_FORMED: Mapping[str, Callable[[random.Random], bytes]] = {
    "predictions": lambda chance: _http(f"/predictions/{PREY}", chance.randbytes(200), "application/octet-stream"),
    "forms": _form,
    **{each.name: partial(_prediction, each) for each in PROTOCOLS},
    "gRPC, TorchServe": _torchserve_call,
    "gRPC, OIP": _inference_call,
}


@cache
def oversized() -> Mapping[str, tuple[bytes, ...]]:
    """Return what is too much, by protocol: more than may be sent, or more members than anything may have."""
    gzipped = "Content-Encoding: gzip\r\n"
    endless = b"Content-Type: text/plain\r\nContent-Length: 1000000000000\r\n\r\n"
    fields = b"".join(b'--edge\r\nContent-Disposition: form-data; name="%x"\r\n\r\n\r\n' % n for n in range(20_000))
    return {
        "predictions": (
            f"POST /predictions/{PREY} HTTP/1.1\r\nHost: a\r\n".encode() + endless + bytes(1000),
            f"POST /predictions/{PREY} HTTP/1.1\r\nHost: a\r\n".encode() + b"X: " + b"y" * 100_000,
            _http(f"/predictions/{PREY}", gzip.compress(bytes(64 * _LARGE // 2), 9), further=gzipped),
        ),
        "forms": (_http(f"/predictions/{PREY}", fields + b"--edge--\r\n", "multipart/form-data; boundary=edge"),),
        **{
            each.name: tuple(_http(target, body, further=lines) for target, body, lines in each.oversized(PREY, _LARGE))
            for each in PROTOCOLS
        },
    }


@cache
def oversized_calls() -> Mapping[str, tuple[bytes, ...]]:
    """Return messages of many members, for a client that minds HTTP/2's windows: method → messages."""
    infer, predictions = f"/{OPEN_INFERENCE}", f"/{TORCHSERVE}"
    name = b"\x0a\x04" + PREY.encode()
    return {
        infer: (name + b"\x32\x00" * (_LARGE // 2), name + b"\x2a\x00" * (_LARGE // 2)),  # outputs, inputs
        predictions: (name + b"".join(b"\x1a\x0a\x0a\x06%06x\x12\x00" % n for n in range(_LARGE // 12)),),
    }


def draw(chance: random.Random) -> Attack:
    """Return the next attack."""
    protocol, way = chance.choice(list(WELL_FORMED)), chance.choice(list(Way))
    message = WELL_FORMED[protocol](chance)
    match way:
        case Way.OVERSIZED if protocol in oversized():
            message = chance.choice(oversized()[protocol])
        case Way.OVERSIZED:  # a message that says to be of 4 GB
            start = message.rindex(b"\x00\x00\x00\x00")
            message = message[:start] + frame(DATA, 0, 1, b"\x00\xff\xff\xff\xff" + bytes(100))
        case Way.CUT | Way.HALF_CLOSED:
            message = message[: chance.randrange(1, len(message))]
        case Way.MALFORMED:
            message = mutated(message, chance)
    return Attack(protocol, way, message)


def mutated(message: bytes, chance: random.Random) -> bytes:
    """Return a message of which some bytes are changed, removed, repeated, or made the beginning of another."""
    changed = bytearray(message)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(changed) or 1)
        match chance.randrange(5):
            case 0:
                changed[at : at + 1] = chance.randbytes(1)
            case 1:
                del changed[at : at + chance.randrange(1, 20)]
            case 2:
                changed[at:at] = changed[at : at + chance.randrange(1, 40)]
            case 3:
                changed[at:at] = chance.choice(
                    [b"\xff", b"\x00", b'"\\ud83c"', b"\r\n", b"[" * 500, b"Transfer-Encoding: chunked\r\n", b"\xc7"]
                )
            case _:
                changed += message
    return bytes(changed)


class Hostile(Crowd):
    """Threads that attack until they are told to stop.

    Args:
        http, grpc: HOST:PORT.
    """

    def __init__(self, http: str, grpc: str, ledger: Ledger, seed: str) -> None:
        super().__init__(ledger, seed)
        self._http = http
        self._grpc = grpc
        for work in (*[self._attack] * THREADS, self._call, self._end_loop):
            self.add(work)

    def _attack(self, chance: random.Random) -> None:
        while not self.over.wait(chance.uniform(0.0, 0.2)):
            attack = draw(chance)
            self._send(attack, chance)
            self.ledger.count(f"hostile: {attack.protocol}, {attack.way}")

    def _send(self, attack: Attack, chance: random.Random) -> None:
        address = self._grpc if attack.protocol.startswith("gRPC") else self._http
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), _PATIENCE) as peer:
            peer.sendall(attack.message)
            if attack.way is Way.CANCELLED:
                self.over.wait(chance.uniform(0.0, 0.02))
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
            if attack.way is Way.CUT:
                return
            if attack.way is Way.HALF_CLOSED:
                peer.shutdown(socket.SHUT_WR)
            while not self.over.is_set() and peer.recv(1 << 16):
                if attack.way is Way.MALFORMED:
                    return

    def _call(self, chance: random.Random) -> None:
        """Call with what is oversized, by a client that keeps to HTTP/2, and cancel some calls."""
        grpc = load_grpc()
        with grpc.insecure_channel(self._grpc) as channel:
            while not self.over.wait(chance.uniform(0.0, 0.3)):
                method, messages = chance.choice(list(oversized_calls().items()))
                call = channel.unary_unary(method).future(chance.choice(messages), timeout=_PATIENCE)
                if chance.random() < 0.3:
                    self.over.wait(chance.uniform(0.0, 0.02))
                    call.cancel()
                with contextlib.suppress(grpc.FutureCancelledError):
                    error = call.exception()
                    if error is not None and error.code() is grpc.StatusCode.UNKNOWN:
                        self.ledger.broken.append(f"a hostile call of {method} met a bug: {error.details()}")
                self.ledger.count("hostile: gRPC, oversized calls")

    def _end_loop(self, chance: random.Random) -> None:
        """Call a path that is no text: the library's own loop ends with an error then."""
        while not self.over.wait(chance.uniform(0.5, 1.0) * _BETWEEN_PATHS):
            self._send(Attack("gRPC", Way.MALFORMED, ENDS_THE_LOOP), chance)
            self.ledger.count(PATHS)
