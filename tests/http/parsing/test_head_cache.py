"""A head that is sent again is known again, wherever the stream is cut: nobody can tell but by the time it takes."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.core.arena import SHARED_FROM
from daemon.http.exchange import Exchange
from daemon.http.limits import HttpLimits
from daemon.http.messages import Response
from daemon.http.parsing.head_cache import LONGEST
from tests.http.peer import GET, LAST, Server, chunked, get, post
from tests.http.reading import compare

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


# What a client may send again and again, with heads around the longest that is remembered.

LARGE = SHARED_FROM + 1000
WIDE = HttpLimits(max_body=2 * LARGE, max_headers=10)


def padded(request: bytes, size: int) -> bytes:
    """Add a header, so that the head has this size."""
    head, end, body = request.partition(b"\r\n\r\n")
    missing = size - len(head + end) - len(b"\r\nX: ")
    return head + b"\r\nX: " + b"x" * missing + end + body


SHAPES = [
    GET,
    get("/b"),
    post(b"abc", "Content-Type: text/plain"),
    post(b""),
    post(b"y" * 5000),
    post(b"a" * LARGE),
    post(b"b" * LARGE, "Content-Type: a/b"),
    post(b"c" * (SHARED_FROM - 1)),
    chunked(b"abc", b"de"),
    chunked(b"x" * LARGE),
    post(b"abc", "Expect: 100-continue"),
    post(b"d" * LARGE, "Expect: 100-continue"),
    post(b"abc", "x-request-id: name", "x-request-deadline-ms: 5"),
    b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length:3\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 3 \r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 0003\r\n\r\nabc",
]
LASTS = [LAST, post(b"abc", "Connection: Upgrade", "Upgrade: h2c"), b"GET / HTTP/1.0\r\n\r\n", b"\0", post(b"x" * 9**6)]
SIZED = [padded(shape, LONGEST + more) for shape in SHAPES for more in (-1, 0, 1)]


def test_a_head_that_is_read_together_with_another_request_is_not_taken_for_its() -> None:
    for first in (*SHAPES[:2], *SHAPES[9:10], *SIZED[::3], *SIZED[1::3]):
        for second in (GET, *SHAPES[2:8:2], *SHAPES[8:12:3]):
            stream = first + second
            for cut in (len(stream), len(first) + len(second) // 2):
                reading = compare([stream[:cut], stream[cut:], first, second, second, first], WIDE)

                assert len(reading.told) == 6 and not reading.refusal


def test_no_cut_makes_a_request_another_ones() -> None:
    for shape in (*SHAPES[:5], *SHAPES[8:9], *SHAPES[10:11], *SHAPES[12:]):
        stream = shape + GET + shape
        for cut in range(1, len(stream), 1 if len(stream) < 500 else 97):
            assert len(compare([shape, stream[:cut], stream[cut:], shape], WIDE).told) == 5


@settings(max_examples=60)
@given(st.data())
def test_nothing_tells_a_head_that_was_known_from_one_that_was_parsed(data: st.DataObject) -> None:
    few = data.draw(st.lists(st.sampled_from([*SHAPES, *SIZED]), min_size=1, max_size=3))
    requests = data.draw(st.lists(st.sampled_from(few), max_size=8)) + data.draw(
        st.lists(st.sampled_from([*LASTS, *few]), max_size=2)
    )
    ends = list(itertools.accumulate(map(len, requests)))
    stream = b"".join(requests)
    cuts = data.draw(st.lists(st.sampled_from([0, *ends]) | st.integers(0, len(stream)), max_size=8))
    places = sorted({0, len(stream), *cuts})

    compare([stream[start:end] for start, end in itertools.pairwise(places)], WIDE)
