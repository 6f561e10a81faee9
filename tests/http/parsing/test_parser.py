"""The receiver's requests from bytes: the same for every split, and one refusal for each fault."""

from dataclasses import replace

import pytest

from tests.http.peer import GET, LIMITS, chunked, get, post
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.parsing.parser import Receiver

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
UPGRADE = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"

Known = tuple[str, str, list[tuple[str, str]], bytes, bool, bool]


class Reader:
    """Feeds a receiver, and keeps what it tells."""

    def __init__(self, limits: HttpLimits = LIMITS) -> None:
        self.requests: list[Request] = []
        self.expected = 0
        self.receiver = Receiver(limits, lambda: 7.0, self.requests.append, self._expect)

    def _expect(self) -> None:
        self.expected += 1

    def feed(self, *pieces: bytes) -> "Reader":
        for piece in pieces:
            self.receiver.feed(piece)
        return self

    def refusal(self, *pieces: bytes) -> tuple[int, str]:
        """Status and sentence of the refusal that some piece must bring."""
        with pytest.raises(DaemonError) as caught:
            self.feed(*pieces)
        return caught.value.status, str(caught.value)

    @property
    def known(self) -> list[Known]:
        """All that a request says, but for its random id."""
        return [(r.method, r.target, r.headers, bytes(r.body), r.http_1_0, r.keep_alive) for r in self.requests]


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


CONVERSATIONS = [
    pytest.param(GET + get("/b?c=d"), id="two requests without bodies"),
    pytest.param(post(b"abc", "Content-Type: text/plain") + GET, id="a body, then another request"),
    pytest.param(chunked(b"abc", b"de") + GET, id="a chunked body"),
    pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\nT: 1\r\n\r\n" + GET, id="trailers"),
    pytest.param(post(b"abc", "Expect: 100-continue"), id="an expectation"),
    pytest.param(post(b"abc", UPGRADE), id="an offer to upgrade, with a body"),
    pytest.param(b"GET / HTTP/1.0\r\n\r\n", id="HTTP/1.0"),
    pytest.param(b"\r\n" + GET, id="an empty line first"),
]


@pytest.mark.parametrize("data", CONVERSATIONS)
def test_a_cut_anywhere_changes_nothing(data: bytes) -> None:
    whole = Reader().feed(data)
    assert whole.requests

    for i in range(1, len(data)):
        assert Reader().feed(data[:i], data[i:]).known == whole.known
    assert Reader().feed(*bytewise(data)).known == whole.known


def test_a_request_is_told_as_it_was_sent() -> None:
    reader = Reader().feed(b"PUT /a%20b?c HTTP/1.1\r\nHost: h\r\nX-Name:  a b \t\r\nx-name: \xe9\r\n\r\n")

    (request,) = reader.requests
    assert (request.method, request.target) == ("PUT", "/a%20b?c")
    assert request.headers == [("Host", "h"), ("X-Name", "a b"), ("x-name", "é")]
    assert request.received == 7.0


def test_what_one_request_says_is_not_said_by_the_next() -> None:
    words = b"X-Tsctl-Timing: 1\r\nX-Request-Priority: high\r\nX-Model-Version: 2\r\nContent-Encoding: gzip\r\n\r\n"

    first, second = Reader().feed(GET[:-2] + words + GET).requests

    assert (first.timed, first.priority, first.model_version, first.coding) == (True, "high", "2", "gzip")
    assert (second.timed, second.priority, second.model_version, second.coding) == (False, None, None, None)


def test_who_names_an_origin_is_a_page_and_nobody_else() -> None:
    asked: list[tuple[str, str]] = []
    limits = replace(LIMITS, pages=lambda origin, host: asked.append((origin, host)))

    Reader(limits).feed(GET, GET[:-2] + b"Origin: http://b\r\n\r\n", GET)

    assert asked == [("http://b", "a")]


def test_trailers_are_not_headers() -> None:
    reader = Reader().feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nHost: b\r\nX: 1\r\n\r\n")

    (request,) = reader.requests
    assert request.headers == [("Host", "a"), ("Transfer-Encoding", "chunked")]


@pytest.mark.parametrize(
    ("value", "times"), [("100-continue", 1), ("100-Continue ", 1)], ids=["as written", "in any case, with a space"]
)
def test_an_expectation_is_told_once_before_the_body(value: str, times: int) -> None:
    data = post(b"abc", f"Expect: {value}")

    reader = Reader().feed(data[:-3])

    assert (reader.expected, reader.requests) == (times, [])


def test_http_1_0_has_no_expectations() -> None:
    reader = Reader().feed(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")

    assert reader.expected == 0


def test_what_is_at_the_limit_is_accepted() -> None:
    headers = "".join(f"X{i}: y\r\n" for i in range(8))
    data = f"POST / HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: 1000\r\n\r\n".encode() + b"a" * 1000

    assert len(Reader().feed(data).requests) == 1
    assert len(Reader().feed(chunked(b"a" * 1000)).requests) == 1


def test_a_target_at_the_limit_may_come_byte_by_byte() -> None:
    target = "/" + "x" * (LIMITS.max_head - len("/Host: a\r\n"))

    assert len(Reader().feed(*bytewise(get(target))).requests) == 1


@pytest.mark.parametrize("more", [0, 1], ids=["at the limit", "over it"])
def test_trailers_count_with_the_head(more: int) -> None:
    said = len("/Host: a\r\nTransfer-Encoding: chunked\r\nT: \r\n")
    trailer = b"T: " + b"y" * (LIMITS.max_head - said + more) + b"\r\n\r\n"
    data = HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + trailer

    if more:
        assert Reader().refusal(data)[0] == 431
    else:
        assert len(Reader().feed(data).requests) == 1


@pytest.mark.parametrize("more", [0, 1], ids=["at the limit", "over it"])
def test_the_line_between_two_chunks_is_limited_as_a_head(more: int) -> None:
    start = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na"
    line = b"\r\n1;" + b"x" * (LIMITS.max_head - len(b"\r\n1;\r\n") + more) + b"\r\n"
    pieces = bytewise(line + b"b\r\n0\r\n\r\n")

    if more:
        assert Reader().refusal(start, *pieces)[0] == 431
    else:
        assert len(Reader().feed(start, *pieces).requests) == 1


@pytest.mark.parametrize("before", [b"", GET, post(b"abc"), chunked(b"abc")], ids=["first", "get", "post", "chunks"])
def test_another_protocol_is_refused_though_its_name_comes_in_two_pieces(before: bytes) -> None:
    reader = Reader().feed(*[before] if before else [])

    assert reader.refusal(b"GET / RT", b"SP/1.0\r\n\r\n")[0] == 400


@pytest.mark.parametrize(
    ("pieces", "again", "parsed"),
    [
        pytest.param([GET], GET, False, id="a head without a body is known again"),
        pytest.param([post(b"abc")], post(b"defghijklmno"), False, id="and one with another length"),
        pytest.param([b"\r\n" + GET], GET, False, id="the empty line before it is no part of it"),
        pytest.param([post(b"abc")[:-1], b"c"], post(b"abc"), True, id="not one whose body came later"),
        pytest.param([post(b"abc", "Expect: 100-continue")], post(b"abc", "Expect: 100-continue"), True, id="nor that"),
        pytest.param([GET], get("/b"), True, id="nor another one"),
    ],
)
def test_a_request_whose_head_is_known_is_not_parsed_again(pieces: list[bytes], again: bytes, parsed: bool) -> None:
    reader = Reader().feed(*pieces)
    reader.receiver._parser = None  # type: ignore[assignment]  # there is nothing left that could parse

    if parsed:
        with pytest.raises(AttributeError):
            reader.feed(again)
    else:
        assert len(reader.feed(again).requests) == 2


def test_the_limits_are_for_each_request() -> None:
    assert len(Reader().feed(GET * 300, chunked(b"a" * 900) * 3).requests) == 303


def test_a_large_head_may_come_in_pieces() -> None:
    data = b"GET / HTTP/1.1\r\nHost: a\r\n" + (b"X: " + b"a" * 350 + b"\r\n") * 5 + b"\r\n"

    assert len(Reader().feed(*bytewise(data)).requests) == 1


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: ", id="header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n", id="header name"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", id="trailer"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", id="chunk extension"),
    ],
)
def test_one_endless_line_is_refused_before_it_has_ended(start: bytes) -> None:
    reader = Reader()

    status, _ = reader.refusal(start, *[b"a" * 100] * 40)

    assert status == 431


@pytest.mark.parametrize(
    ("data", "known"),
    [(HEAD.replace(b"/", b"/x", 1) + b"Content-Length: 9999\r\n\r\n", ("POST", "/x")), (b"\0", ("-", "-"))],
)
def test_what_is_known_of_a_refused_request(data: bytes, known: tuple[str, str]) -> None:
    reader = Reader()
    reader.refusal(data)

    request = reader.receiver.request_so_far()

    assert ((request.method, request.target), request.keep_alive) == (known, False)


@pytest.mark.parametrize(("request_", "asked"), [
    (post(b""), False), (post(b"a"), True), (chunked(b"a"), True), (GET, False),
])  # fmt: skip
def test_a_head_is_asked_about_where_a_body_follows_be_it_of_a_byte(request_: bytes, asked: bool) -> None:
    heads: list[Request] = []
    receiver = Receiver(LIMITS, lambda: 7.0, lambda request: None, lambda: None, on_head=heads.append)

    receiver.feed(request_)

    assert len(heads) == asked
