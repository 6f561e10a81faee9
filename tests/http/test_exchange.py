"""An exchange is answered once: whole or in pieces, or cut off where everyone can see it."""

import re
from collections.abc import Callable

import pytest

from tests.http.peer import GET, Peer, Server, read_answers
from tsctl.daemon.core.errors import DaemonError, QueueFull
from tsctl.daemon.core.job import Caller
from tsctl.daemon.http.bounds.sending import OVERHEAD
from tsctl.daemon.http.exchange import JOINED_BODY, Exchange
from tsctl.daemon.http.messages import Request, Response


def begin(data: bytes = GET) -> tuple[Server, Peer, Exchange]:
    server = Server()
    peer = server.connect()
    peer.send(data)
    return server, peer, server.exchanges[0]


@pytest.mark.parametrize(
    ("version", "headers", "expected"),
    [
        pytest.param(b"1.1", [], [b"no"], id="in chunks"),
        pytest.param(b"1.0", [], [b"no"], id="until the end of the connection, as nginx asks by default"),
        pytest.param(b"1.1", [("X-Accel-Buffering", "yes")], [b"yes"], id="unless the handler says otherwise"),
    ],
)
def test_an_answer_in_pieces_tells_proxies_not_to_hold_it(
    version: bytes, headers: list[tuple[str, str]], expected: list[bytes]
) -> None:
    _, peer, exchange = begin(GET.replace(b"1.1", version, 1))

    exchange.start(Response(200, headers=headers))

    assert re.findall(rb"(?i)x-accel-buffering: (\w+)\r\n", bytes(peer.transport.written)) == expected


def test_a_second_answer_is_not_sent() -> None:
    server, peer, exchange = begin()
    exchange.respond(Response(200, b"once"))

    exchange.respond(Response(200, b"twice"))
    exchange.start(Response(200))
    exchange.send(b"more")
    exchange.finish()
    exchange.fail(QueueFull("no"))

    assert peer.bodies == [b"once"]
    assert not peer.transport.closed
    assert len(server.log) == 1


def test_the_models_know_a_connection_by_its_caller() -> None:
    server, _, first = begin(GET + GET)
    server.connect().send(GET)
    _, second, others = server.exchanges

    assert first.caller is second.caller is not others.caller


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("status", [200, 204, 205, 304, 404, 500])
@pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "in pieces"])
@pytest.mark.parametrize("body", [b"", b"some body", b"x" * 20_000], ids=["nothing", "short", "long"])
def test_a_client_reads_where_each_answer_ends(
    version: str, method: str, status: int, in_pieces: bool, body: bytes
) -> None:
    server = Server(lambda exchange: answer_as(exchange, status, body, in_pieces=in_pieces))
    peer = server.connect()
    peer.send(f"{method} / HTTP/{version}\r\nHost: a\r\nConnection: keep-alive\r\n\r\n".encode())
    peer.send(GET)

    answers = read_answers(bytes(peer.transport.written), [method])
    bodiless = method == "HEAD" or status in (204, 304)
    until_close = in_pieces and version == "1.0" and not bodiless
    assert [answer.status for answer in answers] == ([status] if until_close else [status, status])
    assert answers[0].body == (b"" if bodiless else body)
    assert answers[0].keeps is not until_close and peer.transport.eof is until_close
    headers = answers[0].headers
    assert ("transfer-encoding" in headers) is (in_pieces and not bodiless and not until_close)
    length = None if in_pieces or status in (204, 304) else str(len(body))
    assert headers.get("content-length") == length
    assert len(server.log) == len(server.exchanges) == len(answers)


def answer_as(exchange: Exchange, status: int, body: bytes, *, in_pieces: bool) -> None:
    if not in_pieces:
        exchange.respond(Response(status, body))
        return
    exchange.start(Response(status))
    exchange.send(body[:5])
    exchange.send(body[5:])
    exchange.finish()


class Unwritten:
    """A connection that writes nothing, so that a test sees what would be."""

    def __init__(self, *headers: tuple[str, str]) -> None:
        self.caller = Caller()
        self.headers = headers
        self.flushed = 0
        self.exchange = Exchange(self, Request("GET", "/", []))

    def flush(self, exchange: Exchange) -> None:
        self.flushed += 1

    def answered(self, exchange: Exchange) -> None: ...

    def break_off(self, exchange: Exchange, error: DaemonError) -> None: ...

    @property
    def pieces(self) -> list[int]:
        return [len(piece) for piece in self.exchange.buffer]


@pytest.mark.parametrize(("size", "pieces"), [(0, 1), (1, 1), (JOINED_BODY, 1), (JOINED_BODY + 1, 2)])
def test_a_small_answer_is_one_piece_with_its_head_and_a_large_one_is_not_copied(size: int, pieces: int) -> None:
    connection, body = Unwritten(), b"x" * size

    connection.exchange.respond(Response(200, body))

    assert len(connection.pieces) == pieces and connection.exchange.size == sum(connection.pieces)
    assert pieces == 1 or connection.exchange.buffer[1] is body


@pytest.mark.parametrize(("size", "copied"), [(JOINED_BODY, True), (JOINED_BODY + 1, False)])
def test_a_small_piece_is_one_with_its_length_and_a_large_one_is_not_copied(size: int, copied: bool) -> None:
    connection, piece = Unwritten(), b"x" * size
    connection.exchange.start(Response(200))

    connection.exchange.send(piece)

    assert any(each is piece for each in connection.exchange.buffer) is not copied
    assert b"".join(connection.exchange.buffer).endswith(b"\r\n%x\r\n%b\r\n" % (size, piece))


def test_every_answer_has_the_headers_of_its_connection_too() -> None:
    answers: list[Callable[[Exchange], None]] = [
        lambda exchange: exchange.respond(Response(200, b"x")),
        lambda exchange: exchange.start(Response(200)),
        lambda exchange: exchange.replace(QueueFull("full")),
    ]
    for answer in answers:
        connection = Unwritten(("X-Daemon", "a"))

        answer(connection.exchange)

        assert b"\r\nX-Daemon: a\r\n" in bytes(connection.exchange.buffer[0])


@pytest.mark.parametrize("at_once", [True, False])
def test_the_head_of_an_answer_in_pieces_is_written_at_once_or_with_the_first_piece(at_once: bool) -> None:
    connection = Unwritten()

    connection.exchange.start(Response(200), at_once=at_once)
    assert connection.flushed == at_once and connection.exchange.size == connection.pieces[0]
    connection.exchange.send(b"first")
    assert connection.flushed == at_once + 1


def test_unwritten_pieces_are_taken_whole_as_far_as_they_fit_and_a_larger_one_in_parts() -> None:
    connection = Unwritten()
    exchange = connection.exchange
    exchange.start(Response(200))
    exchange.take_all()
    for piece in (b"abc", b"defg", b"hijklmnop"):
        exchange.send(piece)
    small, middle, large = (bytes(piece) for piece in exchange.buffer)
    assert exchange.size == len(b"abcdefghijklmnop") + 3 * OVERHEAD

    assert exchange.take_bytes(len(small + middle) - 1) == [small]
    assert exchange.take_bytes(len(middle)) == [middle]
    before = exchange.size
    assert exchange.take_bytes(4) == [large[:4]]
    assert exchange.size == before, "it is in memory until its last byte is out"
    assert exchange.take_bytes(len(large)) == [large[4:]]
    assert exchange.size == 0 and exchange.take_bytes(1) == []


def test_a_piece_that_is_written_counts_no_more() -> None:
    connection = Unwritten()
    exchange = connection.exchange
    exchange.respond(Response(200, b"x" * (JOINED_BODY + 1)))
    head, body = connection.pieces

    exchange.take_bytes(head)
    assert exchange.size == body
    exchange.take_bytes(body - 1)
    assert exchange.size == body
    exchange.take_bytes(1)
    assert exchange.size == 0


def test_all_that_is_unwritten_can_be_taken() -> None:
    connection = Unwritten()
    connection.exchange.respond(Response(200, b"x"))
    buffer = list(connection.exchange.buffer)

    assert connection.exchange.take_all() == buffer
    assert connection.exchange.size == 0 and connection.exchange.take_all() == []
