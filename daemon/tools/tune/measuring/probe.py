"""`python -P -m daemon.tools.tune.measuring.probe PORT TYPE TOGETHER`: send requests, body on stdin; print two medians.

In seconds: the first of a request alone; the second of TOGETHER requests, each on its own connection, until all are
answered. TOGETHER 0: send one after the other, and print nothing, until the server closes the connection. Plain
sockets, to keep the client's own cost small.
"""

import contextlib
import json
import socket
import sys
import time
from collections.abc import Sequence
from statistics import median

ROUNDS = 60
WARM_UP = 10
SECONDS = 2.0  # the limit on one measurement


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def receive(sock: socket.socket) -> None:
    """Read one response."""
    head, _, rest = b"", b"", b""
    while not _:
        head, _, rest = (head + _ + rest + _more(sock)).partition(b"\r\n\r\n")
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    left = next(int(value) for name, _, value in lines if name == b"content-length") - len(rest)
    while left > 0:
        left -= len(_more(sock))


def _more(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def ask(socks: Sequence[socket.socket], request: bytes) -> float:
    """Send a request on each connection, and read all responses; return the seconds taken."""
    began = time.perf_counter()
    for sock in socks:
        sock.sendall(request)
    for sock in socks:
        receive(sock)
    return time.perf_counter() - began


def measure(socks: Sequence[socket.socket], request: bytes) -> float:
    end = time.perf_counter() + SECONDS
    took: list[float] = []
    while len(took) < WARM_UP + ROUNDS and (len(took) <= WARM_UP or time.perf_counter() < end):
        took.append(ask(socks, request))
    return median(took[WARM_UP:])


def main(arguments: Sequence[str]) -> None:
    port, content_type, together = int(arguments[0]), arguments[1], int(arguments[2])
    body = sys.stdin.buffer.read()
    typed = f"Content-Type: {content_type}\r\n" if content_type else ""
    head = f"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\n{typed}Content-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    if not together:
        sock = connect(port)
        with contextlib.suppress(OSError):
            while True:
                ask([sock], request)
        return
    socks = [connect(port) for _ in range(together)]
    print(json.dumps([measure(socks[:1], request), measure(socks, request)]))  # noqa: T201 - the reader is a program


if __name__ == "__main__":
    main(sys.argv[1:])
