"""Clients of token streams, all in one thread: each sends a request, and notes when its first token came.

After the first tokens the clients look for more every few milliseconds, one read a connection: a client that is woken
for each token takes as much of a core as the daemon, which it would not take from it on a machine of its own.
"""

import select
import socket
import time
from typing import NamedTuple

PAUSE = 0.005  # seconds between two looks
READ_SIZE = 256 * 1024
PATIENCE = 60.0  # seconds for all of it
END = b"0\r\n\r\n"


class Streamed(NamedTuple):
    """One run: the seconds to each stream's first token, from its request, and those of all of it."""

    firsts: list[float]
    seconds: float


class WrongAnswer(Exception):
    """A stream did not have its tokens."""


class Clients:
    """Connections to a daemon that stay open.

    Args:
        eager: be woken for each token.
    """

    def __init__(self, port: int, count: int, *, eager: bool = False) -> None:
        self._eager = eager
        self._came: list[bytearray] = []
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        self._epoll = select.epoll()
        for each in self._sockets:
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._epoll.register(each, select.EPOLLIN)
        self._by_number = {each.fileno(): index for index, each in enumerate(self._sockets)}

    def close(self) -> None:
        self._epoll.close()
        for each in self._sockets:
            each.close()

    def run(self, model: str, tokens: int) -> Streamed:
        """Ask on each connection for so many tokens; return when they came.

        Raises:
            WrongAnswer: a stream did not end.
        """
        body = str(tokens)
        lines = (f"POST /predictions/{model} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", "", body)
        request = "\r\n".join(lines).encode()
        count = len(self._sockets)
        came = self._came = [bytearray() for _ in range(count)]
        sent, firsts = [0.0] * count, [0.0] * count
        for index, each in enumerate(self._sockets):
            sent[index] = time.perf_counter()
            each.send(request)
        missing, open_ = count, set(range(count))
        while open_:
            if time.perf_counter() - sent[0] > PATIENCE:
                raise WrongAnswer(f"{len(open_)} of {count} streams did not end within {PATIENCE:g} s")
            for index in self._readable(open_, wait=self._eager or missing > 0):
                data = came[index]
                try:
                    data += self._sockets[index].recv(READ_SIZE)
                except BlockingIOError:
                    continue
                if not firsts[index] and not data.endswith(b"\r\n\r\n"):  # more than the head
                    firsts[index] = time.perf_counter() - sent[index]
                    missing -= 1
                if data.endswith(END):
                    open_.discard(index)
        return Streamed(firsts, time.perf_counter() - sent[0])

    def check(self, tokens: int) -> None:
        """Check the answers of the last run; it is not done at once, because its processor time is not a client's.

        Raises:
            WrongAnswer: not these tokens, in their order, came.
        """
        right = [f"{number} " for number in range(1, tokens + 1)]
        for data in self._came:
            if tokens_of(bytes(data)) != right:
                raise WrongAnswer(f"expected {tokens} tokens in order, got {bytes(data)!r:.500}")

    def _readable(self, open_: set[int], *, wait: bool) -> list[int]:
        if wait:
            return [self._by_number[number] for number, _ in self._epoll.poll(1.0)]
        time.sleep(PAUSE)
        return sorted(open_)


def tokens_of(data: bytes) -> list[str]:
    """Return the chunks of an answer."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        return []
    tokens = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length:
            tokens.append(rest[:length].decode())
        rest = rest[length + 2 :]
    return tokens
