"""A conversation: requests are answered whole, in order, and the connection ends when both sides say so."""

from tests.http.peer import GET, Server, echo, get
from tsctl.daemon.http.messages import Response


def answer(server: Server, index: int, body: bytes = b"") -> None:
    server.exchanges[index].respond(Response(200, body))
    server.clock.settle()


def test_each_answer_has_the_id_of_its_request() -> None:
    server = Server(echo)
    peer = server.connect()

    peer.send(GET + GET)

    ids = [exchange.request.id for exchange in server.exchanges]
    assert [answer.headers["x-request-id"] for answer in peer.answers] == ids
    assert len(set(ids)) == 2


def test_the_access_log_has_each_answer_with_its_time() -> None:
    server = Server()
    peer = server.connect()
    peer.send(get("/a?b"))

    server.clock.advance(1.5)
    answer(server, 0)

    assert server.log == [("/a?b", 200, 1.5)]


def test_a_request_knows_who_sent_it() -> None:
    server = Server()

    server.connect(peername=("10.0.0.1", 4321)).send(GET)
    server.connect().send(GET)

    assert [exchange.request.peer for exchange in server.exchanges] == ["10.0.0.1:4321", "unknown"]


def test_requests_that_had_arrived_do_not_save_a_peer_that_does_not_read() -> None:
    server = Server()
    peer = server.connect()
    server.listener.application = lambda exchange: peer.transport.stop_taking() if exchange.request.path else None

    peer.send(get("/stop") + GET)
    server.clock.advance(60.0)

    assert peer.transport.aborted
