"""Whatever clients do in the life of a connection, the invariants hold; and errors that are planted are found."""

from collections.abc import Callable
from typing import Any

import pytest

from daemon.api.management.status import is_compiled
from daemon.http.bounds.upload import Upload
from daemon.http.connection import Connection
from daemon.http.exchange import Exchange
from daemon.http.listener import Listener
from daemon.http.outgoing import Outgoing
from daemon.http.states.connection import READING
from tests.lab.lives.__main__ import main
from tests.lab.lives.answers import Garbled, Seen, seen_answers
from tests.lab.lives.life import explain, run

SEEDS = range(1, 201)  # 2 to 4 ms each; `python -m tests.lab lives` runs more
Plant = Callable[[pytest.MonkeyPatch], None]
HEAD = b"HTTP/1.1 200 OK\r\nx-request-id: a\r\nconnection: keep-alive\r\n"


def nothing(*_: Any) -> None:
    """Do not do it."""


def test_the_invariants_hold_in_every_life() -> None:
    failed = [seed for seed in SEEDS if run(seed) is not None]

    assert not failed, explain(failed[0])


def answers_the_last_request_first(patch: pytest.MonkeyPatch) -> None:
    def write(out: Outgoing, exchange: Exchange) -> bool:
        out.exchanges.remove(exchange)
        out.exchanges.appendleft(exchange)
        return once(out, exchange)

    once = Outgoing.write
    patch.setattr(Outgoing, "write", write)


def answers_twice(patch: pytest.MonkeyPatch) -> None:
    def write(out: Outgoing, exchange: Exchange) -> None:
        exchange.buffer *= 2
        once(out, exchange)

    once = Outgoing._write
    patch.setattr(Outgoing, "_write", write)


def does_not_go_on_with_what_was_read_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "_go_on_parsing", nothing)


def does_not_go_on_when_the_client_reads_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "resume_writing", lambda connection: setattr(connection._out, "paused", False))


def does_not_end_after_the_last_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "_shut_down", nothing)


def reads_again_after_the_last_request(patch: pytest.MonkeyPatch) -> None:
    def shut_down(connection: Connection) -> None:
        once(connection)
        connection._state = READING

    once = Connection._shut_down
    patch.setattr(Connection, "_shut_down", shut_down)


def writes_to_those_who_have_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outgoing, "cut", nothing)


def keeps_connections_that_have_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Listener, "left", nothing)


def keeps_the_bytes_of_uploads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Upload, "end", nothing)


@pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error")
@pytest.mark.parametrize(
    ("plant", "sentence"),
    [
        (answers_the_last_request_first, "each request is answered once, in order"),
        (answers_twice, "each request is answered once, in order"),
        (does_not_go_on_with_what_was_read_ahead, "a polite client is answered"),
        (does_not_go_on_when_the_client_reads_again, "what is answered goes out"),
        (does_not_end_after_the_last_answer, "after the last answer the connection ends"),
        (reads_again_after_the_last_request, "a connection goes from"),
        (writes_to_those_who_have_left, "nothing is written after a close"),
        (keeps_connections_that_have_gone, "nothing is left of connections"),
        (keeps_the_bytes_of_uploads, "no budget is used"),
    ],
)
def test_some_seed_finds_an_error_that_was_planted(
    plant: Plant, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    assert any(sentence in (run(seed) or "") for seed in SEEDS)


def test_a_seed_lives_the_same_life_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "7"]) == 0
    first = capsys.readouterr().out
    assert main(["--seed", "7"]) == 0

    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(HEAD + b"content-length: 3\r\n\r\nabc", [True], id="a length"),
        pytest.param(HEAD + b"content-length: 3\r\n\r\nab", [False], id="a length that is not reached"),
        pytest.param(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", [True], id="chunks"),
        pytest.param(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n", [False], id="chunks without an end"),
        pytest.param(HEAD + b"\r\nabc", [False], id="until the connection is closed"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", [], id="a question for the body is no answer"),
        pytest.param((HEAD + b"content-length: 0\r\n\r\n") * 2, [True, True], id="two"),
    ],
)
def test_answers_are_read_from_what_is_written(data: bytes, expected: list[bool]) -> None:
    assert seen_answers(data) == [Seen("a", 200, False, complete) for complete in expected]


def test_bytes_that_are_no_answer_are_garbled() -> None:
    with pytest.raises(Garbled, match="no status line"):
        seen_answers(b"abc\r\n\r\n")
