"""Bytes to requests (parsing/parser.py): only a DaemonError refuses, cuts change nothing, nor does writing anew."""

from collections.abc import Iterable

from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.peer import GET, chunked, get, post
from tests.http.reading import told
from tests.lab.fuzz.damage import cuts
from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.parsing.parser import Receiver

# Heads as long as any input: how much of one is read before it is refused depends on how it comes.
LIMITS = HttpLimits(max_body=300, max_head=64 * 1024, max_headers=10)


def check(data: bytes) -> object:
    requests, refused_whole = read([data])
    whole = [told(request) for request in requests]
    for pieces in cuts(data):
        others, also = read(pieces)
        assert ([told(request) for request in others], also) == (whole, refused_whole), pieces
    for request in requests:
        again, refused = read([_written(request)])
        assert not refused and [_said(each) for each in again] == [_said(request)]
    return whole, refused_whole


def read(pieces: Iterable[bytes]) -> tuple[list[Request], bool]:
    """The requests up to the last that the connection would answer, and whether what comes after them is refused."""
    requests: list[Request] = []

    def on_request(request: Request) -> None:
        requests.append(request)
        if not request.keep_alive:
            receiver.leave()

    receiver = Receiver(LIMITS, lambda: 7.0, on_request, lambda: None)
    try:
        for piece in pieces:
            receiver.feed(piece)
    except DaemonError as error:
        assert 400 <= error.status < 600 and str(error)
        receiver.leave()
        receiver.request_so_far()
        return requests, True
    return requests, False


def _written(request: Request) -> bytes:
    """Write it with a length and without expectations."""
    framing = {"content-length", "transfer-encoding", "expect", "upgrade"}
    lines = [f"{request.method} {request.target} HTTP/1.{0 if request.http_1_0 else 1}"]
    lines += [f"{name}: {value}" for name, value in request.headers if name.lower() not in framing]
    lines += [f"Content-Length: {len(request.body)}"] if request.body else []  # no header more than there may be
    lines += ["", ""]
    return "\r\n".join(lines).encode("latin-1") + bytes(request.body)


def _said(request: Request) -> tuple[str, str, bytes, str, str | None]:
    return request.method, request.target, bytes(request.body), request.header("host"), request.budget


STREAMS = [
    data
    for table in (LENGTHS, ENCODINGS, CHUNKS, TARGETS, VERSIONS, METHODS, HEADERS)
    for data, _ in table.values()
    if len(data) < 500
]
WORDS = [
    b"GET / HTTP/1.1\r\n", b"HTTP/1.0\r\n", b"Host: a\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"\r\n\r\n",
    b"Expect: 100-continue\r\n", b"x-request-id: a\r\n", b"x-request-deadline-ms: 5\r\n",
    b"x-request-priority: low\r\n",
    b"3\r\nabc\r\n0\r\n\r\n", b"POST ", b"OPTIONS * ", b"CONNECT a:1 ",
]  # fmt: skip
EXAMPLES = [
    GET + get("/b?c=d"),
    post(b"abc", "x-request-id: a", "x-request-deadline-ms: 5", "x-request-priority: low") + GET,
    post(b"abc", "Expect: 100-continue", "Content-Type: text/plain"),
    chunked(b"abc", b"de") + GET,
    post(b"abc", "Connection: Upgrade", "Upgrade: h2c"),
    *STREAMS,
]
TARGET = Target(check, EXAMPLES, WORDS)
