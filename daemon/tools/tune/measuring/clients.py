"""`python -P -m daemon.tools.tune.measuring.clients`: clients that each wait for their response, pause, and send again.

A JSON line (`ClientOrder`) and the request's body on stdin, a JSON line (`ClientResults`) on stdout. One thread and
plain sockets, to keep the clients' own cost small.
"""

import contextlib
import heapq
import random
import select
import socket
import sys
import time
from collections.abc import Sequence

import httptools
import msgspec

from daemon.tools.simulator.percentile import nearest_rank

AT_ONCE = 0.001  # seconds within which all clients start
MOST_TIMES = 3  # times the requested duration, to get enough responses of a slow model; longer only for the first one


class ClientOrder(msgspec.Struct, frozen=True):
    """The clients' order; durations in seconds.

    Attributes:
        target: of the request line.
        body_bytes: length of the body after the line.
        warm_up: duration of the warm-up, whose responses are discarded.
        enough: number of responses; with fewer the run is extended.
        pauses: buckets (least, most, weight) of the pause from a response to the next request; none: no pause.
    """

    port: int
    target: str
    content_type: str
    body_bytes: int
    clients: int
    warm_up: float
    seconds: float
    enough: int
    pauses: Sequence[tuple[float, float, float]] = ()


class ClientResults(msgspec.Struct, frozen=True):
    """The clients' results: latencies in seconds, good responses a second, and the number of errors."""

    throughput: float
    p50: float
    p99: float
    errors: int


class MeasuringClient:
    """One connected client."""

    def __init__(self, sock: socket.socket, request: bytes) -> None:
        self.sent = 0.0
        self._sock = sock
        self._request = request
        self._complete = False
        self._parser = httptools.HttpResponseParser(self)

    def send(self) -> None:
        self._complete = False
        self.sent = time.monotonic()
        self._sock.sendall(self._request)

    def receive(self) -> int | None:
        """Read available bytes; return the status once the response is complete, else None.

        Raises:
            ConnectionError: the server closed the connection.
        """
        data = self._sock.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._parser.feed_data(data)
        return self._parser.get_status_code() if self._complete else None

    def on_message_complete(self) -> None:
        self._complete = True


def play(calls: ClientOrder, request: bytes) -> ClientResults:
    """Run the clients as ordered.

    Raises:
        OSError: the server does not listen, or closed a connection.
    """
    with contextlib.ExitStack() as stack:
        waker = stack.enter_context(select.epoll())
        clients: dict[int, MeasuringClient] = {}
        for _ in range(calls.clients):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", calls.port)))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waker.register(sock.fileno(), select.EPOLLIN)
            clients[sock.fileno()] = MeasuringClient(sock, request)
        return _drive(calls, clients, waker)


def _drive(calls: ClientOrder, clients: dict[int, MeasuringClient], waker: select.epoll) -> ClientResults:
    chance = random.Random(1)
    now = time.monotonic()
    began = now + calls.warm_up
    end, latest = began + calls.seconds, began + MOST_TIMES * calls.seconds
    due = [(now + chance.uniform(0.0, AT_ONCE), fd) for fd in clients]
    heapq.heapify(due)
    latencies: list[float] = []
    errors = 0
    while now < end or not latencies or (len(latencies) < calls.enough and now < latest):
        while due and due[0][0] <= now:
            clients[heapq.heappop(due)[1]].send()
        # `select`, because a timeout of `epoll` steps by a millisecond.
        events = [due[0][0]] if due else []
        if now < latest:
            events.append(latest)
        select.select([waker], [], [], max(0.0, min(events) - now) if events else None)
        for fd, _ in waker.poll(0):
            client = clients[fd]
            status = client.receive()
            if status is None:
                continue
            now = time.monotonic()
            if now >= began:
                latencies.append(now - client.sent)
                errors += status >= 300
            if calls.pauses:
                heapq.heappush(due, (now + _pause(calls, chance), fd))
            else:
                client.send()
        now = time.monotonic()
    ordered = sorted(latencies) or [0.0]
    throughput = (len(latencies) - errors) / max(1e-9, now - began)
    return ClientResults(throughput, nearest_rank(ordered, 50), nearest_rank(ordered, 99), errors)


def _pause(calls: ClientOrder, chance: random.Random) -> float:
    low, high, _ = chance.choices(calls.pauses, [weight for _, _, weight in calls.pauses])[0]
    return chance.uniform(low, high)


def main() -> None:
    calls = msgspec.json.decode(sys.stdin.buffer.readline(), type=ClientOrder)
    body = sys.stdin.buffer.read(calls.body_bytes)
    typed = f"Content-Type: {calls.content_type}\r\n" if calls.content_type else ""
    head = f"POST {calls.target} HTTP/1.1\r\nHost: localhost\r\n{typed}Content-Length: {len(body)}\r\n\r\n"
    print(msgspec.json.encode(play(calls, head.encode() + body)).decode())  # noqa: T201 - the reader is a program


if __name__ == "__main__":
    main()
