"""Bytes to requests (parsing/parser.py): only a DaemonError refuses, cuts change nothing, nor does writing anew."""

from collections.abc import Iterable

from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.peer import GET, chunked, get, post
from tests.http.reading import Reading, Told
from tests.lab.fuzz.damage import cuts
from tests.lab.fuzz.targets import Target
from tsctl.daemon.http.limits import HttpLimits

# Heads as long as any input: how much of one is read before it is refused depends on how it comes.
LIMITS = HttpLimits(max_body=300, max_head=64 * 1024, max_headers=10)


def check(data: bytes) -> object:
    whole = read([data])
    seen = whole.told, bool(whole.refusal)
    for pieces in cuts(data):
        cut = read(pieces)
        assert (cut.told, bool(cut.refusal)) == seen, pieces
    for told, *_ in whole.told:
        again = read([_written(told)])
        assert not again.refusal and [_kept(each) for each, *_ in again.told] == [_kept(told)]
    return seen


def read(pieces: Iterable[bytes]) -> Reading:
    """Read the requests up to the last that the connection would answer."""
    reading = Reading(LIMITS, compares=True)
    for piece in pieces:
        reading.feed(piece)
    assert not reading.refusal or (400 <= int(reading.refusal[:3]) < 600 and reading.refusal[4:] and reading.said)
    return reading


def _written(told: Told) -> bytes:
    """Write it with a length and without expectations."""
    method, target, headers, body, http_1_0, *_ = told
    framing = {"content-length", "transfer-encoding", "expect", "upgrade"}
    lines = [f"{method} {target} HTTP/1.{0 if http_1_0 else 1}"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in framing]
    lines += [f"Content-Length: {len(body)}"] if body else []  # no header more than there may be
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _kept(told: Told) -> tuple[object, ...]:
    """What stays the same when a request is written anew."""
    method, target, headers, body, _, _, budget, _ = told
    return method, target, body, [value for name, value in headers if name.lower() == "host"], budget


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
