"""Whatever clients do in the life of a connection, the invariants hold; and errors that are planted are found."""

from typing import Any

import pytest

from tests.lab.harness.planted import Around, Plant, nothing, row
from tests.lab.lives.__main__ import explain, main, run
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.http.bounds.upload import Upload
from tsctl.daemon.http.connection import Connection
from tsctl.daemon.http.exchange import Exchange, Outgoing
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.states.connection import READING

SEEDS = range(1, 201)  # 2 to 4 ms each; `python -m tests.lab lives` runs more


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
    row("keeps the bytes of uploads", "no budget is used", Upload, release=nothing),
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
