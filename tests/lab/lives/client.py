"""One client of a life, and what the other end does to it."""

import http.client
import random
from itertools import takewhile
from typing import NamedTuple

from tests.http.fake import FakeTransport
from tests.http.peer import GET, LAST, Server, chunked, get, post, responses
from tests.lab.fuzz.targets.receiver import STREAMS
from tests.lab.harness.verdict import Broken
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.states.connection import TRANSITIONS, ConnectionState


class Seen(NamedTuple):
    """One answer.

    Attributes:
        id: of its request.
        last: it announces that the connection is closed.
        complete: all of its bytes have been written.
    """

    id: str
    status: int
    last: bool
    complete: bool


def seen_answers(data: bytes) -> list[Seen]:
    """Read answers one after the other; each has a body, unless its status says that there is none."""
    found: list[Seen] = []
    for answer in responses(data):
        complete = answer.chunked or answer.length is not None
        try:
            answer.read()
        except http.client.IncompleteRead:
            complete = False
        last = answer.headers["connection"] == "close"
        found.append(Seen(answer.headers["x-request-id"], answer.status, last, complete))
    return found


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


HOSTILE = [stream for stream in STREAMS if b"HEAD" not in stream]  # whose answers have a length and no body
ODD = [
    LAST,
    post(b"abc", "Connection: close"),
    post(LARGE, "No: admit"),
    post(b"abc", "No: admit"),
    post(b"abc", "x-request-deadline-ms: 500"),
    GET[:-2] + b"X: " + b"a" * 2500 + b"\r\n\r\n",
    chunked(b"a")[:-2] + b"T: a\r\n" * 400 + b"\r\n",
]


def any_bytes(chance: random.Random) -> bytes:
    """Draw what a client may send: mostly good requests."""
    return good_request(chance) if chance.random() < 0.6 else chance.choice(chance.choice((ODD, HOSTILE)))


class WatchedTransport(FakeTransport):
    """A transport into which nothing may be written after it was closed."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.closed:
            raise Broken("nothing is written after a close")
        super().write(data)


class LivingClient:
    """One client.

    Args:
        polite: sends whole requests that leave the connection open, reads all answers, and stays.
    """

    def __init__(self, server: Server, chance: random.Random, *, polite: bool) -> None:
        connection = server.listener.connect()
        assert isinstance(connection, Connection)
        self.connection = connection
        self.polite = polite
        self.requests = 0  # that were drawn for a polite client
        self.exchanges: list[Exchange] = []
        self.finished = self.stuck = False
        self.owed = 0  # answers to the requests of a client that has closed its side
        self._server, self._chance = server, chance
        self._unsent = b""
        self._state = ConnectionState.READING
        self._answers: list[Seen] = []
        self._parsed = 0
        self.transport = WatchedTransport(connection, server.clock.soon)
        self.transport.half_closes = polite or chance.random() < 0.75  # TLS does not
        if not polite and chance.random() < 0.2:
            self.transport.window = chance.choice([0, 100, 100_000])

    @property
    def open(self) -> bool:
        return not self.transport.closed

    @property
    def reads(self) -> bool:
        """Whether the client has taken all that was written."""
        return not self.stuck and (self.transport.window is None or not self.transport.unsent)

    # Actions.

    def send(self) -> str:
        """Send a part of some requests, cut at any byte."""
        chance = self._chance
        if not self._unsent or chance.random() < 0.3:
            for _ in range(chance.choice([1, 1, 1, 2, 5])):
                self._unsent += good_request(chance) if self.polite else any_bytes(chance)
                self.requests += 1
        whole = len(self._unsent)
        count = max(1, chance.choice([1, 5, 40, whole, whole, whole - 5, chance.randint(1, whole)]))
        return self._send(count)

    def send_rest(self) -> str:
        return self._send(len(self._unsent)) if self._unsent else "has nothing to send"

    def _send(self, count: int) -> str:
        data, self._unsent = self._unsent[:count], self._unsent[count:]
        self.transport.receive(data)
        return f"sends {len(data)} bytes: {data[:30]!r}"

    def finish(self) -> str:
        self.finished = True
        waiting = [each for each in self.exchanges if not each.done]
        kept = list(takewhile(lambda each: each.on_leave is not None and each.on_leave(False), waiting))
        self.owed = len(self.exchanges) - len(waiting) + len(kept) if self.transport.half_closes else 0
        self.transport.receive_eof()
        return "closes its side"

    def leave(self) -> str:
        self.transport.lose()
        return "resets the connection"

    def read(self, *, everything: bool = False) -> str:
        """Begin or cease to read; `everything`: read for good."""
        if self.transport.window is not None:
            self.transport.take(10**7 if everything else self._chance.choice([10, 10_000, 10**6]))
        elif self.stuck:
            self.stuck = False
            self.transport.take_again()
        elif not everything:
            self.stuck = True
            self.transport.stop_taking()
        return "reads" if self.reads else "does not read"

    # Invariants.

    @property
    def _ends(self) -> bool:
        """Whether nothing more will be written to the open connection."""
        return self.transport.eof or self._state is ConnectionState.LINGERING

    @property
    def answers(self) -> list[Seen]:
        if len(self.transport.written) != self._parsed:
            self._parsed = len(self.transport.written)
            self._answers = seen_answers(bytes(self.transport.written))
        # An answer whose head names no length ends with the connection. That one may wait, over TLS, for the end of a
        # body that was refused: closing earlier would take the answer away.
        if self._answers and self._ends:
            self._answers[-1] = self._answers[-1]._replace(complete=True)
        return self._answers

    def check(self) -> None:
        """Check what holds at any time.

        Raises:
            Broken: an invariant does not hold.
        """
        self._check_state()
        answers, accepted = self.answers, [each.request.id for each in self.exchanges]
        ids = [answer.id for answer in answers]
        refused = ids and len(ids) == len(accepted) + 1 and ids[-1] not in accepted
        if ids[: len(ids) - bool(refused)] != accepted[: len(ids) - bool(refused)]:
            raise Broken(f"each request is answered once, in order: {ids} to {accepted}")
        if any(answer.last or not answer.complete for answer in answers[:-1]):
            raise Broken(f"an answer ends before the next begins, and nothing follows the last: {answers}")
        if refused and not answers[-1].last:
            raise Broken(f"a refusal is the last answer: {answers}")
        if answers and answers[-1].last and answers[-1].complete and self.open and not self._ends:
            raise Broken(f"after the last answer the connection ends: {answers}")
        ready = len(list(takewhile(lambda each: each.done, self.exchanges)))
        if answers and answers[-1].last:
            ready = min(ready, len(answers))  # the requests behind the last answer have none
        if self.finished:
            ready = min(ready, self.owed)
        if self.open and self.reads and sum(answer.complete for answer in answers) < ready:
            raise Broken(f"what is answered goes out, unless the connection is closed: {answers} of {ready}")

    def _check_state(self) -> None:
        state = ConnectionState(self.connection._state)
        if state is not self._state and state not in _reachable(self._state):
            raise Broken(f"a connection goes from {self._state.name} to {state.name}")
        self._state = state


def _reachable(state: ConnectionState) -> set[ConnectionState]:
    """Return the states to which arrows lead, one after the other: several may be followed in one step."""
    found: set[ConnectionState] = set()
    todo = [state]
    while todo:
        for after in TRANSITIONS[todo.pop()].values():
            if after not in found:
                found.add(after)
                todo.append(after)
    return found
