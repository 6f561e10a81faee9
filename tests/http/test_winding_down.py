"""A listener that another one has replaced: each connection's next answer is its last, and no client meets a reset."""

from daemon.http.exchange import Exchange
from daemon.http.messages import Response
from tests.http.peer import GET, Server, get, post


def echo(exchange: Exchange) -> None:
    exchange.respond(Response(200, bytes(exchange.request.body)))


def test_an_idle_connection_stays_and_its_next_answer_says_that_it_is_the_last() -> None:
    server = Server(echo)
    peer = server.connect()
    peer.send(GET)

    server.listener.wind_down()
    server.clock.settle()
    assert not peer.transport.closed
    peer.send(post(b"next"))

    assert [answer.keeps for answer in peer.answers] == [True, False]
    assert peer.bodies[-1] == b"next"
    assert peer.transport.eof and not peer.transport.aborted


def test_an_answer_that_has_begun_does_not_end_the_connection_as_it_said_nothing_of_it() -> None:
    server = Server()
    peer = server.connect()
    peer.send(GET)
    server.exchanges[0].start(Response(200))

    server.listener.wind_down()
    server.exchanges[0].send(b"all")
    server.exchanges[0].finish()
    assert not peer.transport.eof
    peer.send(GET)
    server.exchanges[1].respond(Response(200, b"last"))

    assert peer.bodies == [b"all", b"last"]
    assert [answer.keeps for answer in peer.answers] == [True, False]


def test_requests_that_were_sent_ahead_are_answered_up_to_the_first_that_comes_after_it() -> None:
    server = Server()
    peer = server.connect()
    peer.send(get("/0") + get("/1"))

    server.listener.wind_down()
    peer.send(get("/2"))
    for index, exchange in enumerate(server.exchanges):
        exchange.respond(Response(200, b"%d" % index))

    assert peer.bodies == [b"0", b"1", b"2"]
    assert [answer.keeps for answer in peer.answers] == [True, True, False]


def test_a_request_that_is_arriving_is_answered() -> None:
    server = Server(echo)
    peer = server.connect()
    data = post(b"abc")
    peer.send(data[:-1])

    server.listener.wind_down()
    peer.send(data[-1:])

    assert peer.bodies == [b"abc"]
    assert not peer.answers[0].keeps


def test_a_listener_is_busy_until_the_last_has_left() -> None:
    server = Server(echo)
    assert not server.listener.busy
    peer = server.connect()
    assert server.listener.busy

    peer.leave()

    assert not server.listener.busy


def test_a_listener_is_busy_while_somebody_may_be_shaking_hands() -> None:
    server = Server(echo)

    server.listener.connect()

    server.clock.advance(9.9)
    assert server.listener.busy
    server.clock.advance(0.2)
    assert not server.listener.busy
