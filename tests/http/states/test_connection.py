"""A connection's life goes one way, along the arrows of its drawing, each of which some client makes it take."""

from collections.abc import Callable

import pytest

from tests.http.peer import GET, LAST, Peer, Server
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.states import connection
from tsctl.daemon.http.states.connection import TRANSITIONS, ConnectionEvent, ConnectionState, advance

ANSWERING, LEAVING, LINGERING = ConnectionState.ANSWERING, ConnectionState.LEAVING, ConnectionState.LINGERING
READING, CLOSED = ConnectionState.READING, ConnectionState.CLOSED
Step = Callable[[Peer, Server], None]


def test_the_literals_are_the_states() -> None:
    assert {state.name: state.value for state in ConnectionState}.items() <= vars(connection).items()


@pytest.mark.parametrize("state", [state for state in ConnectionState if state is not CLOSED])
def test_a_connection_can_be_lost_at_any_time(state: ConnectionState) -> None:
    assert advance(state, ConnectionEvent.LOST) == CLOSED


def send(data: bytes) -> Step:
    return lambda peer, server: peer.send(data)


def leave(peer: Peer, server: Server) -> None:
    peer.leave()


def finish(peer: Peer, server: Server) -> None:
    peer.finish()


def answer(peer: Peer, server: Server) -> None:
    server.exchanges[-1].respond(Response(200))
    server.clock.settle()


def stop(peer: Peer, server: Server) -> None:
    server.listener.stop()


LIVES: dict[str, list[tuple[Step, ConnectionState]]] = {
    "a client that leaves": [(leave, CLOSED)],
    "a client that leaves before its last answer": [(send(LAST), ANSWERING), (leave, CLOSED)],
    "a last request": [(send(GET), READING), (send(LAST), ANSWERING)],
    "a last answer": [(send(LAST), ANSWERING), (answer, LINGERING), (finish, CLOSED)],
    "a refusal": [(send(b"?"), LINGERING), (send(b"more"), LINGERING), (leave, CLOSED)],
    "a refusal behind an answer": [(send(GET + b"?"), ANSWERING), (leave, CLOSED)],
    "a client that closes its side": [(send(GET), READING), (finish, LEAVING), (answer, CLOSED)],
    "a client that closes its side after its last request": [
        (send(LAST), ANSWERING), (finish, LEAVING), (leave, CLOSED),
    ],
    "a daemon that stops": [(send(GET), READING), (stop, ANSWERING), (answer, LINGERING)],
    "a daemon that stops while a request arrives": [(send(GET[:5]), READING), (stop, READING)],
}  # fmt: skip


@pytest.mark.parametrize("steps", LIVES.values(), ids=LIVES)
def test_what_happens_leads_to_a_state(steps: list[tuple[Step, ConnectionState]]) -> None:
    server = Server()
    peer = server.connect()
    assert isinstance(peer.connection, Connection)

    for step, state in steps:
        step(peer, server)
        assert peer.connection._state == state


def test_each_arrow_is_in_one_of_these_lives() -> None:
    taken = {
        (before, after)
        for steps in LIVES.values()
        for before, after in zip([READING, *(state for _, state in steps)], (state for _, state in steps), strict=False)
    }
    # In one step: refused and answered at once; answered, and closed as the client had closed its side.
    taken |= {(READING, ANSWERING), (ANSWERING, LINGERING)}

    arrows = {(state, after) for state, table in TRANSITIONS.items() for after in table.values()}
    assert arrows <= taken
