"""A head that is known again, a body that is received in place: the same requests as when all is parsed.

The bytes are what arrives at once, each twice, with `~~` and a line feed between; `%N%` stands for N letters, so that
heads may be as long as any that is remembered, and bodies large enough for the arena.
"""

import re

from tests.http.peer import GET, LAST, chunked, get, post
from tests.http.reading import compare
from tests.lab.fuzz.targets import Target
from tests.lab.fuzz.targets.receiver import STREAMS, WORDS
from tsctl.daemon.core.arena import SHARED_FROM
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.parsing.head import LONGEST

_BETWEEN = b"~~\n"
_LETTERS = re.compile(rb"%([0-9]{1,6})%")
_MOST = 300_000  # bytes that one input may stand for
_LIMITS = HttpLimits(max_body=140_000, max_headers=10)


def check(data: bytes) -> object:
    left = _MOST
    pieces = []
    for piece in data.split(_BETWEEN):
        written = _LETTERS.sub(lambda found: b"x" * min(int(found[1]), _MOST), piece)
        left -= len(written)
        if left < 0:
            break
        pieces += [written, written]
    return compare(pieces, _LIMITS).said


def _padded(request: bytes, size: int) -> bytes:
    """Add a header, so that the head has this size."""
    head, end, body = request.partition(b"\r\n\r\n")
    return b"%b\r\nX: %%%d%%%b%b" % (head, size - len(head + end) - 5, end, body)


def _large(size: int, sent: int, *headers: str) -> bytes:
    return post(b"", *headers).replace(b"Content-Length: 0", b"Content-Length: %d" % size) + b"%%%d%%" % sent


_NAMED = post(b"abc", "X-Request-Id: a", "Content-Type: text/plain")
_LENGTHS = [post(b"a" * size, "content-type: a/b") for size in (1, 9, 10, 0)]
_SIZE = SHARED_FROM + 3
_REST = b"%%%d%%" % (_SIZE - 1000)
_LONGEST = [
    _padded(each, LONGEST + more) for each in (GET, post(b"abc"), chunked(b"ab")) for more in (-1, 0, 1)
]  # fmt: skip
TARGET = Target(
    check,
    [
        GET + _BETWEEN + get("/b"),
        _BETWEEN.join(_LENGTHS),
        _BETWEEN.join([_large(140_000, 140_000), _large(140_001, 0)]),
        _BETWEEN.join([_LENGTHS[0], _LENGTHS[0] + GET, _LENGTHS[0] + b"a"]),
        _BETWEEN.join([_NAMED, _NAMED.replace(b"abc", b"xyz"), post(b"a", "x-request-deadline-ms: 5")]),
        _BETWEEN.join([_LENGTHS[0], _LENGTHS[0][:-20], _LENGTHS[0][-20:], _LENGTHS[1] + GET]),
        post(b"abc", "Content-Length: 3") + _BETWEEN + b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        _large(_SIZE, _SIZE) + GET + _BETWEEN + _large(_SIZE, _SIZE)[:-9] + _BETWEEN + LAST,
        _large(_SIZE, _SIZE) + _BETWEEN + _large(_SIZE, 1000),
        *(each + _large(_SIZE, _SIZE) + _BETWEEN + each for each in _LONGEST),
        _BETWEEN.join([_LONGEST[1] + _large(_SIZE, 1000) + _REST, _LONGEST[1], chunked(b"a"), GET]),
        _large(_SIZE, _SIZE, "Expect: 100-continue")
        + _BETWEEN
        + _large(_SIZE, _SIZE, "Upgrade: x", "Connection: upgrade"),
        *(data for data in STREAMS if len(data) < 200),
    ],
    [*WORDS, _BETWEEN, b"%65536%", b"Content-Length: 65536\r\n", b"%2000%", b"X: %2004%\r\n"],
)
