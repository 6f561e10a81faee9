"""What clients send: requests that are answered, and bytes that are refused."""

import random

from tests.http.peer import GET, LAST, chunked, get, post

LARGE = b"0123456789abcdef" * 5000  # beyond the size from which a body is received in its place in the arena


def good_request(chance: random.Random) -> bytes:
    """Draw a request that leaves its connection open."""
    return chance.choice([
        GET,
        get("/b?c"),
        post(b""),
        post(b"abc"),
        post(b"abc" * 300, "Content-Type: text/plain"),
        post(b"abc", "Expect: 100-continue"),
        post(LARGE),
        post(LARGE, "Expect: 100-continue"),
        chunked(b"ab", b"c" * 40),
        chunked(LARGE, b"c"),
        b"\r\n" + GET,
    ])  # fmt: skip


def any_bytes(chance: random.Random) -> bytes:
    """Draw what a client may send: mostly good requests."""
    if chance.random() < 0.6:
        return good_request(chance)
    head = b"POST / HTTP/1.1\r\nHost: a\r\n"
    return chance.choice([
        LAST,
        post(b"abc", "Connection: close"),
        post(LARGE, "No: admit"),
        post(b"abc", "No: admit"),
        post(b"abc", "x-request-deadline-ms: 500"),
        post(b"abc", "Connection: Upgrade", "Upgrade: h2c"),
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        GET[:-2] + b"X: " + b"a" * 2500 + b"\r\n\r\n",
        GET[:-2] + b"X: y\r\n" * 20 + b"\r\n",
        head + b"Content-Length: 1000000000\r\n\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        head + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        chunked(b"a")[:-2] + b"T: a\r\n" * 400 + b"\r\n",
        b"\x16\x03\x01",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / RTSP/1.0\r\nHost: a\r\n\r\n",
    ])  # fmt: skip
