"""The outcome of bytes: the requests seen, the refusal, and whether the connection ends."""

from dataclasses import replace

from tests.http.peer import LIMITS, Server
from tsctl.daemon.core.arena import Storage
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response

END = "end"  # the connection closes after the last answer; after a refusal it always does

# A request as `METHOD target body`, a refusal as its status, and END.
Outcome = list[str | int]
Vectors = dict[str, tuple[bytes, Outcome]]


def tell(exchange: Exchange) -> None:
    """Answer with what was seen."""
    request = exchange.request
    exchange.respond(Response(200, f"{request.method} {request.target} ".encode() + bytes(request.body)))


def outcome(*pieces: bytes, storage: Storage | None = None) -> Outcome:
    """Send pieces on a new connection. With a storage for them, bodies may be large."""
    server = Server(tell, replace(LIMITS, pipeline=10, max_body=1000 if storage is None else 1024**2))
    server.listener.storage = storage
    peer = server.connect()
    for piece in pieces:
        peer.send(piece)
    seen: Outcome = []
    for answer in peer.answers:
        seen.append(answer.body.decode("latin-1") if answer.status == 200 else answer.status)
    server.exchanges.clear()  # so that large bodies make room at once
    refused = bool(seen) and isinstance(seen[-1], int)
    assert peer.transport.eof or not refused, "a refusal is the end"
    if peer.transport.eof and not refused:
        seen.append(END)
    peer.leave()
    return seen


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]
