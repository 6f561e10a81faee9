"""Whatever clients do in the life of a connection, the invariants hold; and errors that are planted are found."""

from typing import Any

import pytest

from tests.lab.harness.planted import Around, Plant, nothing, row
from tests.lab.lives.__main__ import main
from tests.lab.lives.answers import Garbled, Seen, seen_answers
from tests.lab.lives.life import explain, run
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.http.bounds.upload import Upload
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.exchange import Exchange, Outgoing
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.states.connection import READING

SEEDS = range(1, 201)  # 2 to 4 ms each; `python -m tests.lab lives` runs more
HEAD = b"HTTP/1.1 200 OK\r\nx-request-id: a\r\nconnection: keep-alive\r\n"


def test_the_invariants_hold_in_every_life() -> None:
    failed = [seed for seed in SEEDS if run(seed) is not None]

    assert not failed, explain(failed[0])


def last_request_first(once: Any, out: Outgoing, exchange: Exchange) -> Any:
    out.exchanges.remove(exchange)
    out.exchanges.appendleft(exchange)
    return once(out, exchange)


def answered_twice(once: Any, out: Outgoing, exchange: Exchange) -> None:
    exchange.buffer *= 2
    once(out, exchange)


def reads_again(once: Any, connection: Connection) -> None:
    once(connection)
    connection._state = READING


# fmt: off
ERRORS = [
    row("answers the last request first", "each request is answered once, in order", Outgoing,
        write=Around(last_request_first)),
    row("answers twice", "each request is answered once, in order", Outgoing, _write=Around(answered_twice)),
    row("does not go on with what was read ahead", "a polite client is answered", Connection, _go_on_parsing=nothing),
    row("does not go on when the client reads again", "what is answered goes out", Connection,
        resume_writing=lambda connection: setattr(connection._out, "paused", False)),
    row("does not end after the last answer", "after the last answer the connection ends", Connection,
        _shut_down=nothing),
    row("reads again after the last request", "a connection goes from", Connection, _shut_down=Around(reads_again)),
    row("writes to those who have left", "nothing is written after a close", Outgoing, cut=nothing),
    row("keeps connections that have gone", "nothing is left of connections", Listener, left=nothing),
    row("keeps the bytes of uploads", "no budget is used", Upload, end=nothing),
]
# fmt: on


@pytest.mark.skipif(is_compiled(), reason="what is compiled cannot be changed to plant an error")
@pytest.mark.parametrize(("plant", "sentence"), ERRORS)
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
