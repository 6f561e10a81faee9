"""Requests that end workers are kept from the others, and the same are refused after two ends alone."""

from typing import Any

import pytest

from tests.extensions.quarantine.poisoned import LARGE, SMALL, PoisonedVersion, hashed
from tsctl.daemon.core.job import Fate, JobPhase, Reply, TimeBudget
from tsctl.daemon.extensions.quarantine.quarantine import Quarantined

__all__ = ["hashed"]  # a fixture


@pytest.fixture
def bench() -> PoisonedVersion:
    return PoisonedVersion()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_after_two_ends_alone_the_same_is_refused_for_a_minute(body: bytes, bench: PoisonedVersion) -> None:
    bench.prove(body)

    assert ask_again(bench, "third", body) is not None
    bench.clock.advance(60.0)
    bench.ask("fourth", body)

    assert bench.batches == ["first", "second", "fourth"], "after the minute it is tried once more"
    assert bench.model.metrics.refusals["quarantined"] == 1
    bench.crash()
    assert ask_again(bench, "fifth", body) is not None


def ask_again(bench: PoisonedVersion, name: str, body: bytes) -> str | None:
    """Ask, and return why it is refused; None if it is not."""
    try:
        bench.ask(name, body)
    except Quarantined as error:
        return str(error)
    reply = dict(bench.client.replies).get(name)
    return None if reply is None else reply.body.decode()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_the_refusal_names_the_request_how_often_why_until_when_and_what_to_do(
    body: bytes, bench: PoisonedVersion
) -> None:
    bench.prove(body)
    bench.clock.advance(4.0)

    assert ask_again(bench, "third", body) == (
        "This request was not run: the same request has ended 2 workers that ran it alone, the last one 5 s ago:"
        " it exited with code 7. It is refused for 55 s; `tsctl retry m/1.0` ends that now,"
        " `tsctl set m/1.0 --no-quarantine` for good. (Request third)"
    )
    assert Quarantined.status == 500 and Quarantined.kind == "InternalServerException"


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


def test_what_shared_a_batch_with_it_travels_alone_next_time_and_is_cleared_by_its_answer() -> None:
    bench = PoisonedVersion(batch_size=4)
    for name, body in (("bad", SMALL), ("good", b"words")):
        bench.submit(name, body)
    bench.clock.settle()
    bench.crash()
    assert bench.batches == ["bad good"]

    for name, body in (("good-2", b"words"), ("other", b"never seen"), ("other-2", b"never seen either")):
        bench.submit(name, body)
    bench.clock.advance(5.0)
    bench.ask("good-3", b"words")

    assert bench.batches[1:] == ["good-2", "other other-2", "good-3"]
    assert bench.dispatcher.reasons == {"at_once": 3, "suspect": 1}


def test_with_retry_the_second_end_alone_is_the_last(bench: PoisonedVersion) -> None:
    bench.ask("first")
    bench.crash(retry=True)
    assert bench.batches == ["first", "first"]
    bench.crash(retry=True)

    told = bench.client.reply("first")
    assert told.status == 500
    assert told.body.startswith(
        b"The worker died again while it ran this request: it exited with code 7. (Request first)"
    )
    assert b"It has ended 2 workers that ran it alone, so the same request is refused for 60 s" in told.body
    assert ask_again(bench, "second", SMALL) is not None


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


def test_nothing_is_hashed_without_suspects(hashed: list[int], bench: PoisonedVersion) -> None:
    bench.ask("a", b"123456")
    bench.clock.advance(1.0)

    assert hashed == []


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


@pytest.mark.parametrize("what", ["retry", "change"])
def test_an_operator_clears_it(what: str, bench: PoisonedVersion) -> None:
    bench.prove()
    assert bench.model.retryable

    bench.model.retry() if what == "retry" else bench.model.change(bench.model.settings)
    bench.clock.advance(6.0)
    bench.ask("third")

    assert bench.batches[-1] == "third" and bench.dispatcher.reasons == {"full": 2, "suspect": 1}


def test_a_setting_turns_it_off(hashed: list[int]) -> None:
    bench = PoisonedVersion(quarantine=False)
    for name in ("one", "two", "three", "four"):
        bench.ask(name)
        bench.crash()

    assert bench.batches == ["one", "two", "three", "four"]
    assert hashed == [] and not bench.model.metrics.refusals["quarantined"]


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
