"""Answers that wait for their clients have a bound, together and for each connection; who reads does not notice."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.fake import HIGH
from tests.http.peer import GET, LIMITS, Peer, Server, get
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.http.bounds.sending import PIECE, SHARE, STUCK, SendBudget
from tsctl.daemon.http.messages import Response

LIMIT = 16 * PIECE
MOST = LIMIT // SHARE  # of one connection


class Bounded(Server):
    """A listener with a budget for answers that wait; `ask` sends requests on a connection that reads nothing."""

    def __init__(self, limit: int = LIMIT) -> None:
        super().__init__(limits=replace(LIMITS, pipeline=32))
        self.reached: list[str] = []
        self.sending = self.listener.sending = SendBudget(limit, self.reached.append)

    def ask(self, count: int = 1, window: int = 0) -> Peer:
        peer = self.connect()
        peer.transport.window = window
        peer.send(GET * count)
        return peer

    def answer(self, size: int, which: int = -1) -> None:
        """Answer a request, by default the latest, with a body of so many bytes."""
        self.exchanges[which].respond(Response(200, b"x" * size))
        self.clock.settle()

    def fill(self) -> Peer:
        """Hold nearly all of the budget, for a client that reads nothing."""
        peer = self.ask()
        self.answer(LIMIT - 1000)
        assert LIMIT - 1000 <= self.sending.used < LIMIT
        return peer


def read_all(peer: Peer) -> None:
    """Read until nothing more comes."""
    seen = -1
    while len(peer.transport.written) > seen:
        seen = len(peer.transport.written)
        peer.transport.take(seen)


def message(peer: Peer, index: int = 0) -> str:
    return str(json.loads(peer.answers[index].body)["message"])


@pytest.fixture
def server() -> Bounded:
    return Bounded()


def test_an_answer_that_the_client_takes_never_counts(server: Bounded) -> None:
    server.fill()
    before = server.sending.used

    peer = server.ask(window=10 * PIECE)
    server.answer(PIECE // 2)

    assert [len(body) for body in peer.bodies] == [PIECE // 2]
    assert server.sending.used == before


def test_of_a_large_answer_only_what_the_client_reads_is_written(server: Bounded) -> None:
    peer = server.ask()

    server.answer(MOST)
    assert len(peer.transport.written) <= PIECE + HIGH
    assert MOST <= server.sending.used < MOST + 1000
    read_all(peer)

    assert [len(body) for body in peer.bodies] == [MOST]
    assert server.sending.used == 0


def test_an_answer_of_any_size_is_sent_while_nothing_else_waits(server: Bounded) -> None:
    peer = server.ask()

    server.answer(3 * LIMIT)
    read_all(peer)

    assert [len(body) for body in peer.bodies] == [3 * LIMIT]
    assert server.sending.used == 0


def test_an_answer_that_does_not_fit_beside_others_is_replaced_by_503(server: Bounded) -> None:
    server.fill()
    peer = server.ask(window=10**9)

    server.answer(PIECE + 1)

    (answer,) = peer.answers
    assert (answer.status, answer.headers["retry-after"], answer.keeps) == (503, "1", True)
    assert f"may have {LIMIT} bytes together (max_sending_bytes)" in message(peer)
    assert server.reached == [message(peer)]
    assert server.log[-1] == ("/", 503, 0.0)


def test_nor_is_one_whose_neighbour_waits_for_it_cut_off(server: Bounded) -> None:
    server.fill()
    peer = server.ask(2, window=10**9)
    server.answer(10, 2)

    server.answer(PIECE + 1, 1)

    assert peer.statuses == [503, 200]


def test_an_answer_that_fails_while_it_waits_counts_as_its_error(server: Bounded) -> None:
    peer = server.ask(2, window=10**9)
    stream = server.exchanges[1]
    stream.start(Response(200))
    stream.send(b"x" * PIECE)

    stream.fail(BadRequest("no"))
    assert 0 < server.sending.used < 1000
    server.answer(10, 0)

    assert peer.statuses == [200, 400]
    assert server.sending.used == 0


def test_one_connection_holds_one_answer_or_an_eighth_of_the_budget(server: Bounded) -> None:
    peer = server.ask(4)

    for which in (0, 1, 2, 3):
        server.answer(MOST - 2000 if which else 10, which)
    read_all(peer)

    assert peer.statuses == [200, 200, 503, 503]
    assert f"those of one connection {MOST}" in message(peer, 2)
    assert server.sending.used == 0


def test_32_pipelined_answers_that_nobody_reads_hold_no_more_than_that(server: Bounded) -> None:
    server.ask(32)

    for which in range(32):
        server.answer(PIECE, which)

    assert server.sending.used <= MOST + 32 * 1000


def test_answers_behind_one_that_is_not_complete_count(server: Bounded) -> None:
    peer = server.ask(3, window=10**9)

    server.answer(1000, 2)
    assert 1000 < server.sending.used < 2000
    server.answer(MOST, 1)
    assert server.sending.used < 3000  # refused: the connection held an answer already
    server.answer(10, 0)

    assert peer.statuses == [200, 503, 200]
    assert server.sending.used == 0


def test_a_client_that_has_taken_nothing_for_two_seconds_makes_room(server: Bounded) -> None:
    stuck = server.fill()
    server.clock.advance(STUCK)
    peer = server.ask()

    server.answer(PIECE + 1)
    assert stuck.transport.aborted
    read_all(peer)

    assert peer.statuses == [200]
    assert server.sending.used == 0


@pytest.mark.parametrize("piece", [1, PIECE + HIGH], ids=["into the transport", "into the buffer"])
def test_a_client_that_reads_is_not_closed_for_another(piece: int, server: Bounded) -> None:
    reading = server.fill()
    server.clock.advance(STUCK - 0.1)
    reading.transport.take(piece)
    server.clock.advance(0.1)
    peer = server.ask()

    server.answer(PIECE + 1)

    assert not reading.transport.closed
    read_all(peer)
    assert peer.statuses == [503]


def test_a_client_whose_answers_wait_for_a_worker_is_not_closed_for_another() -> None:
    server = Bounded(4 * PIECE)
    waiting = server.ask(2, window=10**9)
    server.answer(4 * PIECE, 1)  # behind one that a worker still makes
    server.clock.advance(10 * STUCK)

    peer = server.ask()
    server.answer(PIECE + 1)
    read_all(peer)

    assert not waiting.transport.closed
    assert peer.statuses == [503]


def test_no_more_clients_are_closed_than_make_room(server: Bounded) -> None:
    peers = []
    for _ in range(7):
        peers.append(server.ask())
        server.answer(2 * PIECE)
    server.clock.advance(STUCK)

    server.ask()
    server.answer(4 * PIECE)

    assert [peer.transport.closed for peer in peers] == [True, True] + [False] * 5


def test_a_stream_that_does_not_fit_is_cut(server: Bounded) -> None:
    server.fill()
    peer = server.ask(window=1000)
    exchange = server.exchanges[-1]
    exchange.start(Response(200))

    while not exchange.done:
        exchange.send(b"x" * 1000)
        server.clock.settle()

    assert peer.transport.aborted
    assert server.sending.used <= LIMIT


def test_a_stream_of_which_nothing_was_written_becomes_503(server: Bounded) -> None:
    peer = server.ask(2, window=10**9)
    stream = server.exchanges[1]
    stream.start(Response(200))

    while not stream.done:
        stream.send(b"x" * PIECE)
    server.answer(10, 0)

    assert peer.statuses == [200, 503]
    assert not peer.transport.closed
    assert server.sending.used == 0


def test_a_connection_that_is_owed_much_is_not_read_until_it_is_out(server: Bounded) -> None:
    peer = server.ask(2, window=10**9)

    server.answer(PIECE + 1, 1)
    assert not peer.transport.reading
    server.answer(1, 0)

    assert peer.transport.reading
    peer.send(get("/next"))
    assert len(server.exchanges) == 3


@given(
    sizes=st.lists(st.sampled_from([0, 1, 5000, 20_000, PIECE, PIECE + 1, 3 * PIECE]), min_size=1, max_size=6),
    streamed=st.lists(st.booleans(), min_size=6, max_size=6),
    reads=st.lists(st.sampled_from([1, 1000, HIGH, PIECE]), max_size=8),
    order=st.permutations(range(6)),
)
def test_however_a_client_reads_it_gets_each_answer_whole_and_in_order(
    sizes: Sequence[int], streamed: Sequence[bool], reads: Sequence[int], order: Sequence[int]
) -> None:
    server = Bounded(10**9)
    peer = server.ask(len(sizes))
    reading = iter(reads)
    for which in order:
        if which >= len(sizes):
            continue
        body, exchange = bytes([which]) * sizes[which], server.exchanges[which]
        if streamed[which]:
            exchange.start(Response(200))
            for at in range(0, len(body), 30_000):
                exchange.send(body[at : at + 30_000])
            exchange.finish()
        else:
            exchange.respond(Response(200, body))
        peer.transport.take(next(reading, 0))
        server.clock.settle()
    read_all(peer)

    assert peer.bodies == [bytes([which]) * size for which, size in enumerate(sizes)]
    assert server.sending.used == 0


def test_each_answer_that_waits_is_noted_and_its_memory_is_returned_later() -> None:
    noted: list[int] = []
    made = Bounded()
    made.sending = made.listener.sending = SendBudget(LIMIT, noted=noted.append)

    made.ask()
    made.answer(4 * PIECE)

    assert sum(noted) >= made.sending.used > 0
