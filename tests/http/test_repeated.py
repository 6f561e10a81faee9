"""A head that is sent again is known again, wherever the stream is cut: nobody can tell but by the time it takes."""

from daemon.http.exchange import Exchange
from daemon.http.limits import HttpLimits
from daemon.http.messages import Response
from tests.http.peer import GET, Server, get, post

LIMITS = HttpLimits(max_body=1000)


def tell(exchange: Exchange) -> None:
    request = exchange.request
    exchange.respond(Response(200, f"{request.method} {request.target} ".encode() + bytes(request.body)))


def told(*pieces: bytes) -> list[bytes]:
    peer = Server(tell, LIMITS).connect()
    for piece in pieces:
        peer.send(piece)
    return peer.bodies


def test_a_request_like_the_one_before_may_be_cut_anywhere() -> None:
    for first in (GET, post(b"abc", "Content-Type: text/plain"), post(b""), get("/b?c")):
        for again in (first, post(b"0123456789", "Content-Type: text/plain"), GET, post(b"xyz")):
            expected = told(first) + told(again)
            for cut in range(1, len(again)):
                assert told(first, again[:cut], again[cut:]) == expected, (first, again, cut)
                assert told(first, first, again[:cut], again[cut:]) == [expected[0], *expected], (first, again, cut)


def test_what_is_owed_is_answered_when_the_next_request_is_cut() -> None:
    first = post(b"abc")
    for cut in range(1, len(first)):
        server = Server(limits=LIMITS)
        peer = server.connect()
        peer.send(first)
        peer.send(first[:cut])
        tell(server.exchanges[0])

        assert peer.bodies == [b"POST / abc"], cut
