"""Clients that leave unanswered requests: queued work is cancelled, running work is answered if possible."""

import pytest

from tests.http.peer import GET, LAST, Peer, Server, get, post
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response


class Work:
    """The work behind an exchange, which can be cancelled until it runs."""

    def __init__(self, exchange: Exchange, *, running: bool) -> None:
        self.running = running
        self.told: list[bool] = []
        self.exchange = exchange
        exchange.on_leave = self._leave

    def _leave(self, gone: bool) -> bool:
        self.told.append(gone)
        return self.running and not gone

    @property
    def called_off(self) -> bool:
        return bool(self.told) and (True in self.told or not self.running)


def start(*running: bool) -> tuple[Server, Peer, list[Work]]:
    """A peer with as many requests, of which some run and some wait."""
    server = Server()
    peer = server.connect()
    peer.send(b"".join(get(f"/{i}") for i in range(len(running))))
    return (
        server,
        peer,
        [Work(exchange, running=runs) for exchange, runs in zip(server.exchanges, running, strict=True)],
    )


def test_a_client_that_closes_its_side_takes_its_waiting_request_with_it() -> None:
    _, peer, (work,) = start(False)

    peer.finish()

    assert work.called_off
    assert peer.transport.closed


def test_a_client_that_closes_its_side_still_gets_what_is_running() -> None:
    _, peer, (work,) = start(True)

    peer.finish()
    assert not work.called_off
    assert not peer.transport.closed
    work.exchange.respond(Response(200, b"late"))

    assert peer.bodies == [b"late"]
    assert not peer.answers[0].keeps
    assert peer.transport.closed
    assert not peer.transport.aborted


def test_an_answer_without_a_say_in_the_matter_is_still_given() -> None:
    server = Server()
    peer = server.connect()
    peer.send(GET)

    peer.finish()
    server.exchanges[0].respond(Response(200, b"late"))

    assert peer.bodies == [b"late"]


def test_nothing_is_answered_after_a_gap() -> None:
    _, peer, works = start(True, False, True)

    peer.finish()
    assert [work.called_off for work in works] == [False, True, True]
    works[0].exchange.respond(Response(200, b"first"))

    assert peer.bodies == [b"first"]
    assert peer.transport.closed


def test_an_answer_that_is_ready_waits_for_the_running_one_before_it() -> None:
    _, peer, works = start(True, True)
    works[1].exchange.respond(Response(200, b"second"))

    peer.finish()
    works[0].exchange.respond(Response(200, b"first"))

    assert peer.bodies == [b"first", b"second"]
    assert works[1].told == []
    assert peer.transport.closed


@pytest.mark.parametrize("part", [GET[:5], post(b"abc")[:-1]], ids=["headers", "body"])
def test_a_request_cut_short_by_the_clients_end_is_dropped(part: bytes) -> None:
    server = Server()
    peer = server.connect()
    peer.send(part)

    peer.finish()

    assert (peer.answers, server.exchanges, server.log) == ([], [], [])
    assert peer.transport.closed


@pytest.mark.parametrize("part", [GET[:5], post(b"abc")[:-1]], ids=["headers", "body"])
def test_nobody_waits_for_the_rest_of_a_request_after_the_clients_end(part: bytes) -> None:
    server = Server()
    peer = server.connect()
    peer.send(GET + part)
    Work(server.exchanges[0], running=True)

    peer.finish()
    server.clock.advance(100.0)
    server.exchanges[0].respond(Response(200))

    assert peer.statuses == [200]
    assert [status for _, status, _ in server.log] == [200]


def test_a_lost_connection_calls_everything_off() -> None:
    server, peer, works = start(True, False, True)

    peer.leave()

    assert [work.told for work in works] == [[True], [True], [True]]
    assert server.listener.connections == set()


def test_an_answer_that_closes_takes_what_comes_after_it_with_it() -> None:
    _, peer, works = start(True, True)
    works[0].exchange.close = True

    works[0].exchange.respond(Response(200))

    assert works[1].told == [True]
    assert peer.statuses == [200]


def test_who_has_been_answered_is_not_told_of_the_leaving() -> None:
    _, peer, works = start(True, True, True)
    works[0].exchange.respond(Response(200))
    works[2].exchange.respond(Response(200))  # not sent yet

    peer.leave()

    assert [work.told for work in works] == [[], [True], []]


def test_a_client_that_closes_after_its_last_request_gets_its_answer() -> None:
    server = Server()
    peer = server.connect()
    peer.send(LAST)
    peer.finish()

    server.exchanges[0].respond(Response(200, b"x"))

    assert peer.bodies == [b"x"]
    assert peer.transport.closed
