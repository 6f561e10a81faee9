"""A head that is sent again is known again, wherever the stream is cut: nobody can tell but by the time it takes."""

import pytest

from tests.http.peer import GET, Server, chunked, get, post
from tests.http.reading import compare
from tsctl.daemon.core.arena import SHARED_FROM
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request, Response
from tsctl.daemon.http.parsing.head import LONGEST, PATIENCE, CachedHead, HeadCache, cached_head_of

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


# Which heads are known again: without a cache every answer would be the same.

GET_HEAD = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
POST_HEAD = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\n"
TWO_LENGTHS = POST_HEAD.replace(b"X: y", b"Transfer-Encoding: chunked")


def parsed(head: bytes) -> Request:
    line, *headers = head.decode().removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = line.split(" ")
    pairs = (header.partition(":") for header in headers)
    return Request(method, target, [(name, value.strip()) for name, _, value in pairs])


def known(head: bytes) -> CachedHead:
    found = cached_head_of(head, parsed(head))
    assert found is not None
    return found


def of_length(digits: bytes) -> bytes:
    return POST_HEAD.replace(b"3", digits)


@pytest.mark.parametrize(
    ("head", "data", "expected"),
    [
        pytest.param(GET_HEAD, GET_HEAD, (b"", b"0"), id="a head without a body is known when it comes alone"),
        pytest.param(GET_HEAD, GET_HEAD + GET_HEAD, None, id="and not with another one"),
        pytest.param(POST_HEAD, POST_HEAD + b"abc", (b"abc", b"3"), id="a head with a length is known again"),
        pytest.param(POST_HEAD, of_length(b"12") + b"ab", (b"ab", b"12"), id="with another length as well"),
        pytest.param(POST_HEAD, of_length(b"12345678"), (b"", b"12345678"), id="of eight digits"),
        pytest.param(POST_HEAD, of_length(b"123456789"), None, id="but not of nine"),
        pytest.param(POST_HEAD, of_length(b""), None, id="nor of none"),
        pytest.param(POST_HEAD, of_length(b"-12"), None, id="nor of anything else"),
        pytest.param(
            POST_HEAD, of_length(b"12").replace(b"X: y", b"X: z"), None, id="nor with another header behind it"
        ),
        pytest.param(POST_HEAD, of_length(b"12").replace(b"/a", b"/b"), None, id="nor for another target"),
        pytest.param(POST_HEAD, of_length(b"12").partition(b"2")[0], None, id="nor when it is cut in the digits"),
    ],
)
def test_which_data_begins_with_a_known_head(head: bytes, data: bytes, expected: tuple[bytes, bytes] | None) -> None:
    assert known(head).beginning_of(data) == expected


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(POST_HEAD.replace(b": 3", b":3"), id="a length in an unusual form"),
        pytest.param(of_length(b"123456789"), id="a length of more digits than are compared"),
        pytest.param(GET_HEAD.replace(b"Host: a", b"Transfer-Encoding: chunked"), id="chunks"),
        pytest.param(TWO_LENGTHS, id="a length and chunks"),
    ],
)
def test_a_head_is_not_known_again_with(head: bytes) -> None:
    assert cached_head_of(head, parsed(head)) is None


def test_a_request_with_a_known_head_has_its_own_length_among_the_headers() -> None:
    head = known(POST_HEAD)

    other, again = head.request_with(b"12", b"", 1.0, 2.0), head.request_with(b"3", b"abc", 1.0, 2.0)

    assert other.headers == [("Host", "a"), ("Content-Length", "12"), ("X", "y")]
    assert again.headers == [("Host", "a"), ("Content-Length", "3"), ("X", "y")]
    assert (again.method, again.target, again.body, again.began, again.received) == ("POST", "/a", b"abc", 1.0, 2.0)


def remembers(cache: HeadCache, head: bytes, *, repeatable: bool = True, before: bytes = b"") -> bool:
    """Let a request with another head come whole, behind others; return whether its head is known from now on."""
    cache.miss()
    cache.expect(before + head, len(before), len(before + head))
    cache.remember(parsed(head), "", repeatable=repeatable)
    return cache.known is not None


def test_a_connection_whose_heads_all_differ_is_compared_no_more_until_one_is_as_before() -> None:
    cache = HeadCache(compares=True)

    assert [remembers(cache, GET_HEAD) for _ in range(PATIENCE + 1)] == [*[True] * PATIENCE, False]
    cache.hit()
    assert [remembers(cache, GET_HEAD) for _ in range(PATIENCE + 1)] == [*[True] * PATIENCE, False]


def test_a_head_is_remembered_up_to_the_longest_wherever_it_begins() -> None:
    cache = HeadCache(compares=True)
    head = GET_HEAD.replace(b"/a", b"/" + b"a" * (LONGEST + 1 - len(GET_HEAD)))

    assert remembers(cache, head) and remembers(cache, head, before=GET_HEAD * 99)
    assert not remembers(cache, head.replace(b"/a", b"/aa"))


def test_a_head_that_was_cut_or_means_something_else_another_time_is_not_remembered() -> None:
    cache = HeadCache(compares=True)
    assert not remembers(cache, GET_HEAD, repeatable=False)

    cache.expect(GET_HEAD[:9], 0, -1)
    cache.remember(parsed(GET_HEAD), "", repeatable=True)
    assert cache.known is None

    cache.expect(GET_HEAD, 0, len(GET_HEAD))
    cache.give_up()
    cache.remember(parsed(GET_HEAD), "", repeatable=True)
    assert cache.known is None


def test_where_each_head_has_to_be_parsed_none_is_remembered() -> None:
    assert not remembers(HeadCache(compares=False), GET_HEAD)
