"""Requests that end workers are kept from the others, and the same are refused after two ends alone."""

from typing import Any

import pytest

from tests.extensions.quarantine.poisoned import LARGE, SMALL, PoisonedVersion, hashed
from tsctl.daemon.core.job import Fate, JobPhase, Reply, TimeBudget
from tsctl.daemon.extensions.quarantine.quarantine import KEPT, Quarantined

__all__ = ["hashed"]  # a fixture


@pytest.fixture
def bench() -> PoisonedVersion:
    return PoisonedVersion()


def ask_again(bench: PoisonedVersion, name: str, body: bytes) -> str | None:
    """Ask, and return why it is refused; None if it is not."""
    try:
        bench.ask(name, body)
    except Quarantined as error:
        return str(error)
    reply = dict(bench.client.replies).get(name)
    return None if reply is None else reply.body.decode()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("other", "headers"),
    [
        pytest.param(lambda body: body[:-1] + b"!", (), id="other bytes of that size"),
        pytest.param(lambda body: body, [("explain", "True")], id="another route"),
        pytest.param(lambda body: body, [("x-tenant", "7")], id="another header"),
    ],
)
def test_a_good_request_is_never_taken_for_it(other: Any, headers: Any, body: bytes, bench: PoisonedVersion) -> None:
    bench.prove(body)

    bench.ask("good", other(body), headers=headers)
    bench.clock.advance(1.0)

    assert bench.client.reply("good").status == 200
    assert bench.dispatcher.reasons["suspect"] == 1, "only what had ended a worker travelled as a suspect"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda worker: worker.die(retry=False, killed=True), id="SIGKILL"),
        pytest.param(lambda worker: worker.hang(Reply(500, b"late"), retry=False), id="the response timeout"),
        pytest.param(lambda worker: worker._exit(None, "it was stopped", Fate.STOPPED, retry=False), id="a stop"),
    ],
)
def test_a_worker_that_was_killed_makes_no_suspect(end: Any, hashed: list[int], bench: PoisonedVersion) -> None:
    for name in ("one", "two", "three"):
        bench.ask(name)
        end(bench.worker)
        bench.clock.advance(6.0)

    assert len(bench.batches) == 3
    assert hashed == [] and not bench.quarantine.watching


def test_what_comes_back_unbegun_is_compared_with_those_that_died_meanwhile_elsewhere() -> None:
    bench = PoisonedVersion(workers=2)
    hanging, crashing = bench.workers
    bench.ask("good", b"words")
    bench.ask("bad")
    ahead, _ = bench.submit("bad-2", SMALL), bench.submit("good-2", b"words")
    bench.clock.settle()
    assert [batch.jobs for batch in hanging.batches][1:] == [[ahead]]
    crashing.crash(retry=False)
    assert ahead.apart is None, "a worker has it"

    hanging.hang(Reply(500, b"late"), retry=False)

    assert ahead.phase is JobPhase.QUEUED and ahead.apart is not None


def test_nobody_is_compared_any_more_when_the_last_suspect_is_forgotten(bench: PoisonedVersion) -> None:
    bench.ask("bad")
    bench.crash()
    bench.clock.advance(KEPT)

    bench.ask("same")

    assert not bench.dispatcher.reasons["suspect"] and not bench.quarantine.watching


def test_only_what_is_as_large_as_a_suspect_is_hashed(hashed: list[int], bench: PoisonedVersion) -> None:
    bench.ask("bad", b"12345678")
    bench.crash()
    assert hashed == [8]

    for name, body in (("b", b"1234567"), ("c", b"123456789")):
        bench.ask(name, body)
        bench.clock.advance(1.0)
    assert hashed == [8]

    bench.ask("d", b"87654321")
    assert hashed == [8, 8]


@pytest.mark.parametrize(
    "silent", [False, True], ids=["its client's time", "the time in which its worker says something"]
)
@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_one_whose_time_was_over_before_its_worker_ended_is_known_as_well(
    body: bytes, silent: bool, bench: PoisonedVersion
) -> None:
    for name in ("first", "second"):
        job = bench.ask(name, body, budget=None if silent else TimeBudget(0.1, bench.clock.now(), "its client"))
        if silent:
            bench.model.dispatcher.late(bench.worker, job, Reply(504, b"late"))
        bench.clock.advance(0.2)
        assert bench.client.reply(name).status == 504
        bench.crash()

    assert "was not run" in str(ask_again(bench, "third", body))
    assert not bench.quarantine._kept
