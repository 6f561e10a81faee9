"""HTTP on a connection (http/connection.py): each request has its answer, however bytes and answers come."""

import re
from collections.abc import Iterable
from dataclasses import replace

from tests.http.peer import Server
from tests.http.reading import Told, told
from tests.lab.fuzz.cuts import cuts
from tests.lab.fuzz.target import Target
from tests.lab.fuzz.targets.receiver import EXAMPLES, LIMITS, WORDS
from tsctl.daemon.http.connection import CONTINUE
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response

_LIMITS = replace(LIMITS, pipeline=3)
_ID = re.compile(rb"x-request-id: .*")

# The requests, the heads of their answers, and whether there was a refusal, and what became of the connection.
Seen = tuple[list[Told], list[bytes], bool, bool, bool]


def check(data: bytes) -> object:
    whole = _seen([data])
    assert _seen([data], late=True) == whole
    for pieces in cuts(data):
        assert _seen(pieces) == whole, pieces
        assert _seen(pieces, late=True) == whole, pieces
    return whole


def _seen(pieces: Iterable[bytes], *, late: bool = False) -> Seen:
    """Send pieces, with the answers at once, or when all was sent, the last request's first."""

    def answer(exchange: Exchange) -> None:
        exchange.respond(Response(204, phrase=f"Number {server.exchanges.index(exchange)}"))

    server = Server((lambda exchange: None) if late else answer, _LIMITS)
    peer = server.connect()
    for piece in pieces:
        peer.send(piece)
        assert sum(not exchange.done for exchange in server.exchanges) <= _LIMITS.pipeline
    while waiting := [exchange for exchange in server.exchanges if not exchange.done]:
        for exchange in reversed(waiting):
            answer(exchange)
        server.clock.settle()

    written = bytes(peer.transport.written).replace(CONTINUE, b"")
    *heads, rest = written.split(b"\r\n\r\n")
    count = len(server.exchanges)
    refused = len(server.log) > count
    assert len(server.log) == count + refused and len(heads) == count + refused
    assert (refused or not rest) and (peer.transport.eof or not refused), "a refusal is the end"
    assert [int(head.split()[1]) for head in heads[:count]] == [204] * count
    answers = [_ID.sub(b"", head) for head in heads[:count]]
    seen = [told(exchange.request) for exchange in server.exchanges], answers, refused, peer.transport.eof
    open_still = not peer.transport.closed
    peer.finish()
    peer.leave()
    assert not server.listener.connections, "a connection that was lost is kept"
    return *seen, open_still


TARGET = Target(check, EXAMPLES, WORDS)
