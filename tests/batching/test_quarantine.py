"""Requests that end workers are kept from the others, and the same are refused after two ends alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from daemon.batching import quarantine
from daemon.batching.fingerprint import fingerprint
from daemon.batching.quarantine import AT_ONCE, Quarantined
from daemon.errors import QueueFull
from daemon.job import Budget, Job, Phase, Reply
from daemon.workers.slot import SlotState
from daemon.workers.stub import StubWorker
from tests.batching.test_dispatcher import Bench as DispatcherBench

SMALL, LARGE = b"poison", b"poison" * AT_ONCE


class Bench(DispatcherBench):
    """A version whose workers end with bodies that begin with `poison`, when they are told to."""

    def ask(self, name: str, body: bytes = SMALL, headers: Sequence[tuple[str, str]] = (), **further: Any) -> Job:
        job = self.client.job(name, body, arrived=self.clock.now(), **further)
        job.headers = [("x-request-id", name), *headers]
        self.model.submit(job)
        self.clock.settle()
        return job

    @property
    def worker(self) -> StubWorker:
        return self.engine.workers[-1]

    def crash(self, retry: bool = False) -> None:
        """The youngest worker ends, and the next one is there."""
        self.worker.crash(retry=retry)
        (slot,) = self.model.pool.slots
        if slot.state is SlotState.BACKOFF:
            self.clock.advance(slot.retry_at - self.clock.now())
        self.clock.settle()

    def prove(self, body: bytes = SMALL) -> None:
        """Two workers end with a request alone."""
        for name in ("first", "second"):
            self.ask(name, body)
            self.crash()

    def told(self, name: str) -> Reply:
        return dict(self.client.replies)[name]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that is hashed."""
    sizes: list[int] = []

    def counted(params: Any, headers: Any) -> bytes:
        sizes.append(sum(len(param.value) for param in params))
        return fingerprint(params, headers)

    monkeypatch.setattr(quarantine, "fingerprint", counted)
    return sizes


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_after_two_ends_alone_the_same_is_refused_for_a_minute(body: bytes) -> None:
    bench = Bench(policy="greedy")
    bench.prove(body)

    assert ask_again(bench, "third", body) is not None
    bench.clock.advance(60.0)
    bench.ask("fourth", body)

    assert bench.batches == [("first",), ("second",), ("fourth",)], "after the minute it is tried once more"
    assert bench.model.metrics.quarantined == 1
    bench.crash()
    assert ask_again(bench, "fifth", body) is not None


def ask_again(bench: Bench, name: str, body: bytes) -> str | None:
    """Ask, and return why it is refused; None if it is not."""
    try:
        bench.ask(name, body)
    except Quarantined as error:
        return str(error)
    reply = dict(bench.client.replies).get(name)
    return None if reply is None else reply.body.decode()


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_the_refusal_names_the_request_how_often_why_until_when_and_what_to_do(body: bytes) -> None:
    bench = Bench(policy="greedy")
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
def test_a_good_request_is_never_taken_for_it(other: Any, headers: Any, body: bytes) -> None:
    bench = Bench(policy="greedy")
    bench.prove(body)

    bench.ask("good", other(body), headers)
    bench.clock.advance(1.0)

    assert bench.told("good").status == 200
    assert bench.dispatcher.reasons["suspect"] == 1, "only what had ended a worker travelled as a suspect"


def test_what_shared_a_batch_with_it_travels_alone_next_time_and_is_cleared_by_its_answer() -> None:
    bench = Bench(policy="greedy", batch_size=4)
    for name, body in (("bad", SMALL), ("good", b"words")):
        bench.model.submit(named(bench, name, body))
    bench.clock.settle()
    bench.crash()
    assert bench.batches == [("bad", "good")]

    for name, body in (("good-2", b"words"), ("other", b"never seen"), ("other-2", b"never seen either")):
        bench.model.submit(named(bench, name, body))
    bench.clock.advance(5.0)
    bench.ask("good-3", b"words")

    assert bench.batches[1:] == [("good-2",), ("other", "other-2"), ("good-3",)]
    assert bench.dispatcher.reasons == {"at_once": 3, "suspect": 1}


def named(bench: Bench, name: str, body: bytes, **further: Any) -> Job:
    return bench.client.job(name, body, arrived=bench.clock.now(), **further)


def test_with_retry_the_second_end_alone_is_the_last() -> None:
    bench = Bench(policy="greedy")
    bench.ask("first")
    bench.crash(retry=True)
    assert bench.batches == [("first",), ("first",)]
    bench.crash(retry=True)

    told = bench.told("first")
    assert told.status == 500
    assert told.body.startswith(
        b"The worker died again while it ran this request: it exited with code 7. (Request first)"
    )
    assert b"It has ended 2 workers that ran it alone, so the same request is refused for 60 s" in told.body
    assert ask_again(bench, "second", SMALL) is not None


def test_with_retry_a_suspect_is_not_run_again_once_it_is_refused() -> None:
    bench = Bench(policy="greedy", batch_size=2)
    for name, body in (("bad", SMALL), ("good", b"words")):
        bench.model.submit(named(bench, name, body))
    bench.clock.settle()
    bench.crash(retry=True)  # in company
    assert bench.batches[-1] == ("bad",)
    bench.crash(retry=True)  # alone
    bench.clock.advance(1.0)
    bench.model.submit(named(bench, "bad-2", SMALL))
    bench.clock.settle()
    bench.crash(retry=True)  # alone again

    assert bench.batches == [("bad", "good"), ("bad",), ("good",), ("bad-2",)]
    assert bench.client.statuses == {"bad": 500, "good": 200, "bad-2": 500}


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_the_same_that_wait_already_are_refused_and_the_others_are_served_in_order(body: bytes) -> None:
    bench = Bench(policy="greedy", batch_size=2)
    bench.ask("bad", body)
    for name, content in (
        ("good-1", b"w" * len(body)), ("bad-2", body), ("good-2", b"words"), ("bad-3", body), ("good-3", b"more"),
    ):  # fmt: skip
        bench.model.submit(named(bench, name, content))
        bench.clock.advance(0.001)
    bench.crash()
    bench.clock.settle()
    while bench.model.running:
        bad = bench.batches[-1][0].startswith("bad")
        bench.crash() if bad else bench.clock.advance(1.0)

    ahead = ("good-1", "bad-2")  # not begun when the first worker ended
    assert bench.batches == [("bad",), ahead, ("bad-2",), ("good-1", "good-2"), ("good-3",)]
    assert [bench.client.statuses[name] for name in ("bad-2", "bad-3", "good-1")] == [500, 500, 200]
    assert b"was not run" in bench.told("bad-3").body


def test_nothing_is_sent_ahead_behind_a_suspect() -> None:
    bench = Bench(policy="greedy")
    bench.ask("first")
    bench.crash()
    bench.ask("second")

    bench.ask("good-1", b"w")
    bench.ask("good-2", b"w")

    assert [len(worker.hand) for worker in bench.engine.workers][-1] == 1
    assert bench.model.pool.granting == 0


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda worker: worker.die(retry=False, killed=True), id="SIGKILL"),
        pytest.param(lambda worker: worker.hang(Reply(500, b"late"), retry=False), id="the response timeout"),
        pytest.param(lambda worker: worker._exit(None, "it was stopped", False, stopped=True), id="a stop"),
    ],
)
def test_a_worker_that_was_killed_makes_no_suspect(end: Any, hashed: list[int]) -> None:
    bench = Bench(policy="greedy")
    for name in ("one", "two", "three"):
        bench.ask(name)
        end(bench.worker)
        bench.clock.advance(6.0)

    assert len(bench.batches) == 3
    assert hashed == [] and not bench.dispatcher.quarantine.watching


def test_what_the_worker_had_not_begun_is_no_suspect(hashed: list[int]) -> None:
    bench = Bench(policy="greedy")
    bench.ask("a")
    second = bench.ask("b", b"words")
    assert bench.dispatcher.reasons == {"full": 1, "ahead": 1}

    bench.worker.crash(retry=False)

    assert hashed == [len(SMALL)]
    assert second.suspect is None and second.phase is Phase.QUEUED


def test_nothing_is_hashed_without_suspects_and_with_some_only_what_is_as_large(hashed: list[int]) -> None:
    bench = Bench(policy="greedy")
    bench.ask("a", b"123456")
    bench.clock.advance(1.0)
    assert hashed == []

    bench.ask("bad", b"12345678")
    bench.crash()
    assert hashed == [8]
    for name, body in (("b", b"1234567"), ("c", b"123456789")):
        bench.ask(name, body)
        bench.clock.advance(1.0)
    assert hashed == [8]

    bench.ask("d", b"87654321")
    assert hashed == [8, 8]


def test_an_answer_ends_the_watch() -> None:
    bench = Bench(policy="greedy")
    bench.ask("first")
    bench.crash()
    assert bench.dispatcher.quarantine.watching

    bench.ask("second")
    bench.clock.advance(1.0)

    assert bench.told("second").status == 200
    assert not bench.dispatcher.quarantine.watching


@pytest.mark.parametrize("what", ["retry", "change"])
def test_an_operator_clears_it(what: str) -> None:
    bench = Bench(policy="greedy")
    bench.prove()
    assert bench.model.retryable

    bench.model.retry() if what == "retry" else bench.model.change(bench.model.settings)
    bench.clock.advance(6.0)
    bench.ask("third")

    assert bench.batches[-1] == ("third",) and bench.dispatcher.reasons == {"full": 2, "suspect": 1}


def test_a_setting_turns_it_off(hashed: list[int]) -> None:
    bench = Bench(policy="greedy", quarantine=False)
    for name in ("one", "two", "three", "four"):
        bench.ask(name)
        bench.crash()

    assert bench.batches == [("one",), ("two",), ("three",), ("four",)]
    assert hashed == [] and not bench.model.metrics.quarantined


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_one_whose_time_was_over_before_its_worker_ended_is_known_as_well(body: bytes) -> None:
    bench = Bench(policy="greedy")
    for name in ("first", "second"):
        bench.ask(name, body, budget=Budget(0.1, bench.clock.now(), "its client"))
        bench.clock.advance(0.2)
        assert bench.told(name).status == 504
        bench.crash()

    assert "was not run" in str(ask_again(bench, "third", body))
    assert not bench.dispatcher.quarantine._kept


class Parked(Bench):
    """A large request is as large as a suspect, and waits for another thread."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(policy="greedy", **settings)
        self.ask("bad", LARGE)
        self.crash()
        self.clock.held = []


def test_while_a_large_one_is_hashed_others_pass_it_and_it_is_not_sent() -> None:
    bench = Parked()
    bench.ask("large", LARGE)
    bench.ask("small", b"w")
    assert bench.batches[1:] == [("small",)] and bench.model.waiting == 1 and not bench.model.idle

    bench.clock.release()
    bench.clock.advance(1.0)

    assert bench.batches[1:] == [("small",), ("large",)]


def test_one_that_is_no_suspect_takes_its_place_by_the_time_that_it_came() -> None:
    bench = Parked(batch_size=4)
    bench.ask("running", b"w")
    bench.ask("large", b"x" * len(LARGE))
    bench.clock.advance(0.1)
    bench.ask("later", b"w")

    bench.clock.release()
    bench.clock.advance(1.0)

    assert bench.batches[-1] == ("large", "later")


def test_its_deadline_holds_meanwhile() -> None:
    bench = Parked()
    job = bench.ask("large", LARGE, budget=Budget(0.5, bench.clock.now(), "its client"))

    bench.clock.advance(0.6)
    assert job.phase is Phase.ENDED and bench.told("large").status == 504

    bench.clock.release()
    bench.clock.settle()
    assert bench.model.idle and bench.model.queue.bytes == 0 and len(bench.batches) == 1


def test_the_queue_timeout_holds_meanwhile() -> None:
    bench = Parked(queue_timeout=0.5)
    bench.ask("large", LARGE)

    bench.clock.advance(0.6)

    assert bench.told("large").status == 504


def test_its_client_may_leave_meanwhile() -> None:
    bench = Parked()
    job = bench.ask("large", LARGE)

    bench.model.abandon(job)
    bench.clock.release()
    bench.clock.settle()

    assert job.phase is Phase.ENDED and bench.model.idle and bench.model.queue.bytes == 0


def test_a_stop_answers_it_meanwhile() -> None:
    bench = Parked()
    bench.ask("large", LARGE)
    bench.model.stop()

    bench.model.refuse_waiting()
    bench.clock.release()
    bench.clock.settle()

    assert bench.told("large").status == 503 and bench.model.idle


def test_it_counts_against_the_limits_of_the_queue() -> None:
    bench = Parked(queue_jobs=2)
    bench.ask("large", LARGE)
    bench.ask("large-2", LARGE)

    with pytest.raises(QueueFull, match="2 requests wait"):
        bench.ask("small", b"w")


def test_what_arrives_while_the_dead_is_hashed_is_compared_when_that_is_known() -> None:
    bench = Bench(policy="greedy")
    bench.prove(LARGE)
    bench.model.retry()
    bench.clock.advance(6.0)
    bench.ask("first", LARGE)
    bench.clock.held = []
    bench.worker.crash(retry=False)
    bench.clock.advance(6.0)

    bench.ask("second", LARGE)
    assert bench.batches[-1] == ("first",), "it waits for the comparison"
    bench.clock.release()
    bench.clock.settle()

    assert bench.batches[-1] == ("second",) and bench.dispatcher.reasons["suspect"] == 2


def test_what_was_hashed_for_a_table_that_was_cleared_counts_no_more() -> None:
    bench = Bench(policy="greedy")
    bench.ask("first", LARGE)
    bench.clock.held = []
    bench.worker.crash(retry=False)

    bench.model.retry()
    bench.clock.release()
    bench.clock.advance(6.0)

    assert not bench.dispatcher.quarantine.watching


def test_a_turn_of_the_loop_hashes_no_more_than_a_mebibyte(hashed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(policy="greedy", batch_size=200, queue_bytes=10**8)
    for number in range(100):
        bench.model.submit(named(bench, f"r{number}", b"%05d" % number * (AT_ONCE // 5)))
    bench.clock.settle()
    bench.clock.held = []

    bench.worker.crash(retry=False)

    assert 900_000 < sum(hashed) <= quarantine.MOST_AT_ONCE
    bench.clock.release()
    bench.clock.settle()
    assert len(hashed) == 100 == len(bench.dispatcher.quarantine.suspects)


def test_the_one_that_has_waited_longest_is_the_first_of_the_suspects_whatever_its_lane_was() -> None:
    bench = Bench(policy="greedy", queue_timeout=10.0)
    bench.ask("bad")
    for name, low in (("low", True), ("normal", False), ("normal-2", False)):
        bench.ask(name, SMALL, low=low)
        bench.clock.advance(0.01)

    bench.worker.crash(retry=False)

    lane = bench.model.queue._suspects
    assert [job.id for job in lane] == ["low", "normal", "normal-2"]
