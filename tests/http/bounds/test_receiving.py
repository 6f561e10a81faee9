"""Bodies that are on their way have a bound together; who finds no room waits a second, and is told."""

import json
from dataclasses import replace

import pytest

from tests.http.peer import GET, LIMITS, Peer, Server, chunked, echo, get
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.places import PAGE
from tsctl.daemon.http.bounds.receiving import PATIENCE, STEP, ReceiveBudget
from tsctl.daemon.http.connection import Connection

LIMIT = 4 * STEP
WIDE = replace(LIMITS, max_body=LIMIT)


class Bounded(Server):
    """A listener with a budget for bodies that are being received."""

    def __init__(self, limit: int = LIMIT, arena: Arena | None = None) -> None:
        super().__init__(echo, WIDE)
        self.reached: list[str] = []
        self.receiving = self.listener.receiving = ReceiveBudget(limit, self.reached.append)
        self.listener.storage = arena

    def uploading(self, count: int, announced: int = LIMIT) -> Peer:
        """A client that has sent `count` bytes of the body that it announced."""
        peer = self.connect()
        peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % announced)
        peer.send(b"x" * count)
        return peer


@pytest.fixture(params=["heap", "arena"])
def server(request: pytest.FixtureRequest) -> Bounded:
    return Bounded(arena=Arena(64 * LIMIT) if request.param == "arena" else None)


def test_who_announces_much_and_sends_nothing_takes_nothing_away(server: Bounded) -> None:
    for _ in range(20):
        server.uploading(0)

    assert server.receiving.used == 0


def test_what_has_arrived_counts_until_the_body_is_complete(server: Bounded) -> None:
    peer = server.uploading(1000)
    assert server.receiving.used == 1000

    peer.send(b"x" * (LIMIT - 1000))

    assert peer.statuses == [200]
    assert server.receiving.used == 0


def test_chunks_count_as_they_arrive() -> None:
    server = Bounded()
    peer = server.connect()

    peer.send(chunked(b"x" * 700, b"y" * 500)[:-5])

    assert server.receiving.used == 1200


def test_a_body_in_one_piece_never_counts() -> None:
    server = Bounded()
    server.uploading(LIMIT - 1)
    server.uploading(2)  # there is no more room

    peer = server.connect()
    peer.send(GET + b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")

    assert peer.bodies == [b"", b"abc"]


def test_without_room_a_connection_is_not_read_and_goes_on_when_there_is(server: Bounded) -> None:
    first, second = server.uploading(LIMIT - 1), server.uploading(2)
    assert (first.transport.reading, second.transport.reading, second.answers) == (True, False, [])
    server.clock.advance(PATIENCE / 2)

    first.send(b"x")
    second.send(b"x" * (LIMIT - 2))

    assert (first.statuses, second.statuses) == ([200], [200])
    assert server.receiving.used == 0


def test_the_first_that_waits_goes_on_first(server: Bounded) -> None:
    large, small = server.uploading(LIMIT - 2 * STEP), server.uploading(2 * STEP)
    assert small.transport.reading, "it had just enough room"
    waiting = [server.uploading(1) for _ in range(3)]
    assert [peer.transport.reading for peer in waiting] == [False] * 3

    small.leave()

    assert [peer.transport.reading for peer in waiting] == [True, False, False]
    large.leave()
    assert all(peer.transport.reading for peer in waiting)


def test_without_room_for_a_second_it_is_told_and_closed(server: Bounded) -> None:
    server.uploading(LIMIT - 1)
    refused = server.uploading(2)

    server.clock.advance(PATIENCE)

    (answer,) = refused.answers
    assert (answer.status, answer.headers["retry-after"], answer.keeps) == (503, "1", False)
    assert f"may have {LIMIT} bytes together (max_receiving_bytes)" in json.loads(answer.body)["message"]
    assert server.receiving.used == LIMIT - 1
    assert server.reached == [json.loads(answer.body)["message"]]
    assert isinstance(refused.connection, Connection)
    assert (refused.connection._receiver.body.place, not refused.connection._receiver.body._data) == (None, True)


def test_of_many_without_room_only_as_many_are_refused_as_make_room(server: Bounded) -> None:
    peers = [server.uploading(STEP) for _ in range(4)] + [server.uploading(STEP), server.uploading(STEP)]

    for peer in peers:
        peer.send(b"x" * STEP)  # all wait
    server.clock.advance(PATIENCE)

    refused = [peer for peer in peers if peer.answers]
    assert 0 < len(refused) < len(peers)
    assert server.receiving.used <= LIMIT


def test_what_is_read_at_once_is_a_part_of_what_is_left(server: Bounded) -> None:
    assert server.receiving.at_once == LIMIT / 16
    server.uploading(LIMIT)
    server.uploading(LIMIT - 1)

    assert server.receiving.at_once == PAGE


def test_waiting_for_room_is_not_blamed_on_the_client(server: Bounded) -> None:
    first = server.uploading(LIMIT - 1)
    server.clock.advance(9.5)
    second = server.uploading(10)
    server.clock.advance(0.9)
    first.send(b"x")

    server.clock.advance(9.5)

    assert second.answers == []  # 10 bytes in 10.4 s would be too slow, had it been read


def test_a_request_before_it_is_answered_all_the_same() -> None:
    server = Bounded()
    server.uploading(LIMIT - 1)
    peer = server.connect()

    peer.send(get("/first") + b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab")
    server.clock.advance(PATIENCE)

    assert peer.statuses == [200, 503]


def test_what_arrives_is_noted_so_that_its_memory_is_given_back() -> None:
    noted: list[int] = []
    budget = ReceiveBudget(10, noted=noted.append)

    budget.count_bytes(3)
    budget.count_bytes(8)

    assert noted == [3, 8]
