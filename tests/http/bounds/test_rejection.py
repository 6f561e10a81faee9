"""With as many connections as there may be, a further one is told so and closed; the others are served."""

from dataclasses import replace

import pytest

from tests.http.fake import HIGH, FakeTransport
from tests.http.peer import GET, LIMITS, Server, echo, read_answers
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.http.bounds.rejection import RejectingProtocol, connections_within
from tsctl.daemon.http.listener import Listener

TWO = replace(LIMITS, connections=2)


def test_a_connection_too_many_is_told_and_closed() -> None:
    server = Server(echo, TWO)
    kept = [server.connect(), server.connect()]

    refusing = server.listener.connect()
    refused = FakeTransport(refusing, FakeClock().soon)
    kept[0].send(GET)

    (answer,) = read_answers(bytes(refused.written))
    assert isinstance(refusing, RejectingProtocol) and refused.closed
    assert (answer.status, answer.headers["retry-after"], answer.keeps) == (503, "1", False)
    assert b"Too many connections: the limit of open files (`ulimit -n`) allows 2." in answer.body
    assert kept[0].statuses == [200]
    kept[0].leave()
    late = server.connect()
    late.send(GET)
    assert late.statuses == [200], "one has left"


def test_the_one_that_has_been_idle_for_longest_makes_room_and_one_that_is_owed_an_answer_does_not() -> None:
    server = Server(lambda exchange: None, TWO)
    busy, idle = server.connect(), server.connect()
    busy.send(GET)
    server.clock.advance(0.9)
    assert isinstance(server.listener.connect(), RejectingProtocol)
    server.clock.advance(0.1)

    late = server.connect()

    assert (busy.transport.closed, idle.transport.closed, late.transport.closed) == (False, True, False)
    assert isinstance(server.listener.connect(), RejectingProtocol)


def test_one_whose_client_has_not_taken_its_answer_makes_no_room_and_is_left_after_a_while() -> None:
    server = Server(echo, TWO)
    slow = server.connect()
    slow.transport.window = 10
    slow.send(GET)
    idle = server.connect()
    server.clock.advance(1.0)
    assert 0 < slow.transport.unsent < HIGH

    server.connect()

    assert (slow.transport.closed, idle.transport.closed) == (False, True)
    server.clock.advance(TWO.body_timeout)
    assert slow.transport.aborted


def test_it_is_noted_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(echo, TWO)
    for _ in range(2):
        server.connect()

    for _ in range(5):
        server.listener.connect()
    server.clock.advance(60.0)  # who is idle may stay for 75
    server.listener.connect()

    told = ("rejecting further ones with 503", "idle ones are closed for further ones")
    assert caplog.messages == [f"2 connections are open: {how}" for how in told]


def test_another_than_the_log_may_be_told() -> None:
    told: list[str] = []
    listener = Listener(lambda exchange: None, replace(LIMITS, connections=0), FakeClock(), full=told.append)

    listener.connect()

    assert told == ["0 connections are open: rejecting further ones with 503"]


@pytest.mark.parametrize(("files", "connections"), [(20_000, 19_872), (1024, 896), (128, 64), (8, 4), (1, 1)])
def test_clients_do_not_get_every_descriptor(files: int, connections: int) -> None:
    assert connections_within(files) == connections
