"""A large body goes around the parser, to its place in the arena; nobody can tell, however the stream is cut."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.peer import GET, LIMITS, Peer, Server, chunked, post
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.places import PAGE
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.parsing import body, parser

LARGE = 10  # bytes, for these tests
BODY = bytes(range(40))


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (body, parser):
        monkeypatch.setattr(module, "SHARED_FROM", LARGE)


def echo_and_tell(exchange: Exchange) -> None:
    kind = type(exchange.request.body).__name__
    told = exchange.request.header("content-length")
    exchange.respond(Response(200, bytes(exchange.request.body), [("Kind", kind), ("Told", told)]))


class Storing(Server):
    """A listener with an arena. It keeps no exchange, so that places become free."""

    def __init__(self, pages: int = 4) -> None:
        super().__init__(echo_and_tell, replace(LIMITS, max_body=4 * PAGE))
        self.arena = self.listener.storage = Arena(pages * PAGE)

    def _take(self, exchange: Exchange) -> None:
        self._application(exchange)


def kinds(peer: Peer) -> list[str]:
    return [answer.headers["kind"] for answer in peer.answers]


REPEATED = [BODY, BODY[:20], BODY[::-1], b"small", BODY * 3, BODY]


@given(cuts=st.lists(st.integers(0, 600), max_size=12))
def test_a_head_that_is_repeated_begins_a_body_of_its_own_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    server = Storing()
    peer = server.connect()
    stream = b"".join(map(post, REPEATED))
    places = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})

    for start, end in itertools.pairwise(places):
        peer.send(stream[start:end])

    assert peer.bodies == REPEATED
    assert [answer.headers["told"] for answer in peer.answers] == [str(len(body)) for body in REPEATED]
    assert server.arena.used == 0


def test_a_head_that_is_repeated_is_not_parsed_again() -> None:
    server = Storing()
    peer = server.connect()

    parsed = []
    for sent in REPEATED[:3]:
        stream = post(sent)
        peer.send(stream[:-5])
        assert isinstance(peer.connection, Connection)
        parsed.append(peer.connection._receiver._head.headers)
        peer.send(stream[-5:])

    assert parsed[1] is parsed[0] and parsed[2] is parsed[0]  # only the first was parsed
    assert peer.bodies == REPEATED[:3]
    assert kinds(peer) == ["Lease"] * 3


@pytest.mark.parametrize("known", [False, True], ids=["parsed", "known"])
@pytest.mark.parametrize(
    ("header", "room", "seconds", "status"),
    [
        pytest.param("X: y", math.inf, LIMITS.body_timeout + 1, 408, id="too slow"),
        pytest.param("X-Request-Deadline-Ms: 500", math.inf, 0.6, 504, id="slower than its deadline"),
        pytest.param("X: y", 5, 1.1, 503, id="without room"),
    ],
)
def test_a_body_that_is_refused_is_the_last_of_its_connection(
    known: bool, header: str, room: float, seconds: float, status: int
) -> None:
    server = Storing()
    peer = server.connect()
    if known:
        peer.send(post(BODY, header)[:-5])
        peer.send(BODY[-5:])
    server.listener.receiving.limit = room
    peer.send(post(BODY, header)[:-5])

    server.clock.advance(seconds)
    peer.send(BODY[-5:] + GET)

    assert peer.statuses == [200] * known + [status]
    assert not peer.answers[-1].keeps and peer.transport.eof
    assert [(target, status) for target, status, _ in server.log] == [("/", each) for each in peer.statuses]
    assert server.arena.used == 0 and server.listener.receiving.used == 0


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        pytest.param(post(BODY[: LARGE - 1]), "bytes", id="a small body"),
        pytest.param(post(BODY[:LARGE]), "Lease", id="a body that is just large"),
        pytest.param(chunked(BODY[: LARGE - 1]), "bytes", id="a small body in chunks"),
        pytest.param(chunked(BODY), "Lease", id="a large body in chunks"),
    ],
)
def test_only_a_large_body_goes_there(stream: bytes, kind: str) -> None:
    peer = Storing().connect()

    peer.send(stream)

    assert kinds(peer) == [kind]


LONG = bytes(range(256)) * (PAGE // 64)  # four pages


def test_a_body_that_is_announced_keeps_nobody_out() -> None:
    server = Storing(pages=4)
    idle = server.connect()
    idle.send(post(LONG)[: -len(LONG) + 1])
    assert server.arena.used == len(LONG)

    peer = server.connect()
    peer.send(post(LONG))
    assert kinds(peer) == ["Lease"] and peer.bodies == [LONG]

    idle.send(LONG[1:])
    assert kinds(idle) == ["bytes"] and idle.bodies == [LONG]
    assert server.arena.used == 0


def test_what_has_come_of_a_large_body_is_not_copied_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "CHEAP", 0)
    server = Storing(pages=4)
    slow, peer = server.connect(), server.connect()
    slow.send(post(LONG)[: -2 * PAGE])

    peer.send(post(LONG[: 2 * PAGE])[:-1])
    assert server.arena.used == 4 * PAGE  # two each

    peer.send(LONG[2 * PAGE - 1 : 2 * PAGE])
    slow.send(LONG[2 * PAGE :])
    assert (kinds(peer), kinds(slow)) == (["Lease"], ["bytes"])
    assert slow.bodies == [LONG]
    assert server.arena.used == 0


@pytest.mark.parametrize("end", [Peer.leave, Peer.finish])
def test_a_body_that_gave_up_its_place_is_forgotten_when_its_client_leaves(end: object) -> None:
    server = Storing(pages=4)
    idle, peer = server.connect(), server.connect()
    idle.send(post(LONG)[:100])
    peer.send(post(LONG)[:100])

    assert callable(end)
    end(idle)
    end(peer)

    assert server.arena.used == 0 and not server.arena._arriving


def test_the_longest_body_in_chunks_is_copied_at_its_beginning_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "FIRST", PAGE)
    server = Storing(pages=5)
    peer = server.connect()
    stream = chunked(LONG[:PAGE], LONG[PAGE : PAGE + 1], LONG[PAGE + 1 :])
    used = []

    for byte in stream[:-1]:
        peer.send(bytes([byte]))
        used.append(server.arena.used)
    peer.send(stream[-1:])

    assert sorted(set(used)) == [0, PAGE, 4 * PAGE]
    assert kinds(peer) == ["Lease"] and peer.bodies == [LONG]
    assert server.arena.used == 0


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6000)), max_size=60),
    st.sampled_from([0, 100, 10**6]),
    st.sampled_from([0, 20, PAGE, 10**6]),
)
def test_each_body_is_its_own_whoever_gives_up_its_place(turns: list[tuple[int, int]], cheap: int, first: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "CHEAP", cheap)
        patch.setattr(body, "FIRST", first)
        server = Storing(pages=4)
        peers = [server.connect() for _ in range(5)]
        bodies = [bytes([number]) * (number * 3000 + 20) for number in range(5)]
        left = [
            post(body) + chunked(*(body[at : at + 1000] for at in range(0, len(body), 1000))) + post(body)
            for body in bodies
        ]

        for who, count in [*turns, *((who, 100_000) for who in range(5))]:
            peers[who].send(left[who][:count])
            left[who] = left[who][count:]

        assert [peer.bodies for peer in peers] == [[body] * 3 for body in bodies]
        assert server.arena.used == 0 and not server.arena._arriving


def test_who_waits_for_100_is_told_to_go_on() -> None:
    peer = Storing().connect()

    peer.send(post(BODY, "Expect: 100-continue")[: -len(BODY)])

    assert bytes(peer.transport.written) == b"HTTP/1.1 100 Continue\r\n\r\n"
    peer.transport.written.clear()
    peer.send(BODY)
    assert peer.bodies == [BODY]
