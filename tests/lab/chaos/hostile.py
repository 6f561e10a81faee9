"""Clients that mean harm, on every protocol: their requests are oversized, cut, cancelled, half-closed or malformed.

Nothing is held against an answer to them but that it is no bug's; their harm would show at the honest clients beside
them, in the daemon's log and in its memory.
"""

import contextlib
import gzip
import random
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial

from tests.kit.protocols import PROTOCOLS, Protocol
from tests.lab.fuzz.damage import mutations
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.protocol_clients import ProtocolClients

PREY = "prey"  # the model that they ask: it answers, however it is asked
THREADS = 6
_PATIENCE = 2.0  # seconds that they wait for an answer
_LARGE = 2 * 1024 * 1024  # bytes of what has too many members
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER


class Way(StrEnum):
    OVERSIZED = "oversized"
    CUT = "cut off"
    CANCELLED = "cancelled"
    HALF_CLOSED = "half-closed"
    MALFORMED = "malformed"


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


WELL_FORMED: Mapping[str, Callable[[random.Random], bytes]] = {
    "predictions": lambda chance: _http(f"/predictions/{PREY}", chance.randbytes(200), "application/octet-stream"),
    "forms": _form,
    **{each.name: partial(_prediction, each) for each in PROTOCOLS},
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


def draw(chance: random.Random, of: ProtocolClients | None) -> tuple[str, Way, bytes]:
    """Return the next attack, of one protocol (None for HTTP): its name, how its client behaves, and the bytes."""
    made = WELL_FORMED if of is None else of.well_formed(PREY)
    protocol, way = chance.choice(list(made)), chance.choice(list(Way))
    message = made[protocol](chance)
    match way:
        case Way.OVERSIZED if of is not None:
            message = of.oversized(message)
        case Way.OVERSIZED:
            message = chance.choice(oversized()[protocol])
        case Way.CUT | Way.HALF_CLOSED:
            message = message[: chance.randrange(1, len(message))]
        case Way.MALFORMED:
            message = next(mutations([message], [b"\r\n", b"\0"], chance))
    return protocol, way, message


class Hostile(Crowd):
    """Threads that attack until they are told to stop.

    Args:
        address: HOST:PORT, of HTTP.
        others: those of other protocols attack, too, at their own.
    """

    def __init__(self, address: str, ledger: Ledger, seed: str, others: Sequence[ProtocolClients]) -> None:
        super().__init__(ledger, seed)
        self._address = address
        self._others = others
        for _ in range(THREADS):
            self.add(self._attack)
        for each in others:
            each.harm(self, PREY)

    def _attack(self, chance: random.Random) -> None:
        over_http = [None] * len(WELL_FORMED)
        while not self.over.wait(chance.uniform(0.0, 0.2)):
            of = chance.choice([*over_http, *(each for each in self._others for _ in each.well_formed(PREY))])
            protocol, way, message = draw(chance, of)
            self._send(self._address if of is None else of.address, way, message, chance)
            self.ledger.count(f"hostile: {protocol}, {way}")

    def _send(self, address: str, way: Way, message: bytes, chance: random.Random) -> None:
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), _PATIENCE) as peer:
            peer.sendall(message)
            if way is Way.CANCELLED:
                self.over.wait(chance.uniform(0.0, 0.02))
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
            if way is Way.CUT:
                return
            if way is Way.HALF_CLOSED:
                peer.shutdown(socket.SHUT_WR)
            while not self.over.is_set() and peer.recv(1 << 16):
                if way is Way.MALFORMED:
                    return
