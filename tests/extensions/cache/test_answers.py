"""Equal requests get one answer, from the cache or from one that runs, and no answer that must not be given again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.said import said_in
from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.core.fingerprint import AT_ONCE
from tsctl.daemon.core.job import Job, JobPhase, Piece, Reply, TimeBudget
from tsctl.daemon.extensions.cache.answers import IN_A_TURN, OF_HEADER, OVERHEAD, AnswerCache, seconds_of
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.handlers.tensor_heads import InferHead

FACTS = RequestFacts("POST", "/predictions/m", 0.0, None, "", None)
LARGE = b"x" * (AT_ONCE + 1)
Headers = list[tuple[str, str]]


class Cached(StubVersion):
    """A version with a cache, whose batches of one take a second; `ask` is what `submission.submit` does."""

    def __init__(self, seconds: float = 60.0, most: int = 1_000_000, **settings: Any) -> None:
        super().__init__(clock=FakeClock(), **{"policy": "greedy", **settings})
        self.full = 0
        self.cache = AnswerCache(self.model, seconds, most, self._note_full)
        self.model.watchers = (self.cache,)
        self.engine.answer = lambda job: Reply(200, b"answer to " + bytes(job.params[0].value)[:10])

    def _note_full(self) -> None:
        self.full += 1

    def ask(self, name: str, body: bytes = b"a", *, headers: Headers | None = None, **further: Any) -> Job:
        job = self.client.job(name, body, headers=headers or [], **further)
        submit(self, job)
        self.clock.settle()
        return job

    def after(self, seconds: float, name: str, body: bytes = b"a", **further: Any) -> Job:
        self.clock.advance(seconds)
        return self.ask(name, body, **further)

    @property
    def counted(self) -> tuple[int, int, int]:
        return self.cache.hits, self.cache.shared, self.cache.misses


def submit(bench: Cached, job: Job) -> None:
    """Do as `submission.submit` does."""
    if bench.cache.watch(job, FACTS):
        bench.model.taken.add_job(job)
    else:
        bench.model.submit(job)


@pytest.fixture
def bench() -> Cached:
    return Cached()


def test_tensors_that_differ_in_their_head_and_its_id_are_other_requests(bench: Cached) -> None:
    one, other = (InferHead(each, {}, [], [], binary=False) for each in ("1", "2"))  # which the worker answers with
    heads = {"first": ["FP32"], "second": ["INT32"], "third": ["FP32"], "fourth": one, "fifth": other, "sixth": one}
    for name, head in heads.items():
        job = bench.client.job(name, b"a")
        job.infer = head
        submit(bench, job)
        bench.clock.advance(2.0)

    assert bench.sent == ["first", "second", "fourth", "fifth"]


def test_a_new_answer_is_kept_though_an_older_request_ends_after_it() -> None:
    bench = Cached(workers=2)
    bench.engine.batch_time = lambda size: 5.0
    bench.engine.answer = lambda job: Reply(200, job.id.encode())
    bench.ask("old")
    bench.ask("waits for old")
    bench.engine.batch_time = lambda size: 1.0
    bench.after(0.5, "new", headers=[("Cache-Control", "no-cache")])

    bench.after(9.0, "third")

    assert bench.client.reply("third").body == b"new"
    assert bench.client.reply("waits for old").body == b"old" and bench.sent == ["old", "new"]


def test_a_large_request_whose_client_has_a_deadline_runs_itself(bench: Cached) -> None:
    for name in ("first", "second"):
        bench.after(5.0, name, LARGE, budget=TimeBudget(9.0, bench.clock.now(), "its client", by_client=True))
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "second"] and bench.client.statuses == {"first": 200, "second": 200}


@pytest.mark.parametrize("unpacked", [None, Path("of-an-archive")])
def test_answers_of_a_folder_served_in_place_are_not_given_again_once_a_worker_was_started_since(
    bench: Cached, unpacked: Path | None
) -> None:
    bench.model.source = replace(bench.model.source, unpacked=unpacked)
    bench.ask("old")
    bench.after(2.0, "again")
    bench.ask("runs-until-it-is-unloaded", b"b")
    bench.model.presence.end("unloaded")
    bench.clock.advance(2.0)
    bench.engine.answer = lambda job: Reply(200, b"of the files as they are now")
    bench.model.presence.resume("loaded")
    bench.clock.settle()

    bench.ask("new")
    bench.after(2.0, "new-of-b", b"b")

    assert bench.sent == ["old", "runs-until-it-is-unloaded", *([] if unpacked else ["new", "new-of-b"])]


def test_an_answer_has_the_age_of_its_stay_here_and_no_other(bench: Cached) -> None:
    bench.engine.answer = lambda job: Reply(200, b"a", "Fine", [("age", "7"), ("x-a", "b")])
    bench.ask("first")
    bench.after(3.0, "second")

    assert [*bench.client.reply("second").headers] == [("x-a", "b"), ("Age", "2")]
    assert bench.cache.bytes == OVERHEAD + len(b"a" + b"Fine" + b"x-ab") + OF_HEADER


def test_a_streamed_answer_is_not_kept_and_those_that_wait_run_themselves(bench: Cached) -> None:
    pieces: list[Reply] = []
    first = bench.ask("first", stream=pieces.append)
    bench.ask("second")

    first.stream(Piece(200, b"one"))
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "second"]
    assert bench.client.reply("second").body == b"answer to a"
    assert bench.counted == (0, 0, 2)


@pytest.mark.parametrize("body", [b"a", LARGE], ids=["for an equal one", "for its digest"])
def test_a_client_that_leaves_while_its_request_waits_is_forgotten(body: bytes, bench: Cached) -> None:
    bench.ask("first", body)
    bench.clock.held = []
    second = bench.ask("second", body)
    assert second.phase is JobPhase.QUEUED and second in bench.model.taken

    bench.model.abandon(second)
    bench.clock.release()
    bench.clock.advance(5.0)

    assert bench.sent == ["first"]
    assert bench.client.statuses == {"first": 200}
    assert (bench.cache._waiting, bench.cache._waiting_bytes) == (0, 0)


@pytest.mark.parametrize("body", [b"a", LARGE], ids=["for an equal one", "for its digest"])
def test_what_waits_was_accepted_and_is_answered_though_the_version_stops(body: bytes, bench: Cached) -> None:
    bench.engine.answer = lambda job: Reply(500, b"failed")
    bench.ask("first", body)
    bench.clock.held = []
    bench.ask("second", body)
    assert not bench.model.idle

    bench.model.stop()
    bench.clock.release()
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "second"]
    assert bench.model.idle
    with pytest.raises(Stopping):
        bench.ask("third", body)


def test_where_the_request_that_runs_is_left_by_its_client_the_next_one_that_waits_runs() -> None:
    bench = Cached(capacity=1)
    first, second, *_ = [bench.ask(name) for name in ("first", "second", "third", "fourth")]

    bench.model.abandon(second)
    bench.model.abandon(first)
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "third"] and bench.client.statuses == {"third": 200, "fourth": 200}
    assert bench.counted == (0, 1, 2) and (bench.cache._waiting, bench.cache._waiting_bytes) == (0, 0)


def test_where_the_request_that_runs_expires_those_that_wait_run_themselves() -> None:
    bench = Cached(capacity=1)
    bench.ask("busy", b"b")
    bench.ask("first", budget=TimeBudget(0.5, bench.clock.now(), "its client", by_client=True))
    bench.ask("second")
    bench.clock.advance(5.0)

    assert bench.client.statuses == {"busy": 200, "first": 504, "second": 200}


def test_no_more_bytes_wait_than_may_in_the_queue() -> None:
    bench = Cached(queue_bytes=3)
    for name in ("first", "second", "third"):
        bench.ask(name, b"aa")
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "third"] and len(bench.client.statuses) == 3


def test_a_client_that_is_cut_by_the_answer_to_another_one_is_over(bench: Cached) -> None:
    bench.ask("first")
    second = bench.client.job("second", b"a")
    submit(bench, second)
    third = bench.ask("third")
    second._deliver = lambda reply: bench.model.abandon(third)
    bench.ask("fourth")

    bench.clock.advance(5.0)

    assert bench.client.statuses == {"first": 200, "fourth": 200}
    assert (bench.cache._waiting, bench.model.idle) == (0, True)


def test_what_ran_without_an_answer_to_keep_makes_nobody_wait_in_line() -> None:
    bench = Cached(batch_size=64)
    bench.engine.answer = lambda job: Reply(400, b"no")
    for number in range(50):
        bench.ask(str(number))

    bench.clock.advance(2.5)

    assert len(bench.client.statuses) == 50
    assert bench.batches[0] == "0" and len(bench.batches) == 2


def test_many_that_wait_are_answered_some_in_a_turn() -> None:
    bench = Cached(queue_jobs=1000)
    for number in range(3 * IN_A_TURN):
        bench.ask(str(number))
    answered: list[int] = []
    real = bench.cache._go_on

    def go_on() -> None:
        before = len(bench.client.replies)
        real()
        answered.append(len(bench.client.replies) - before)

    bench.cache._go_on = go_on  # type: ignore[method-assign]
    bench.clock.advance(2.0)

    assert answered == [IN_A_TURN, IN_A_TURN, IN_A_TURN - 1]


def test_an_answer_for_which_many_would_have_to_leave_is_not_kept() -> None:
    bench = Cached(most=(IN_A_TURN + 2) * (OVERHEAD + 20))
    bench.engine.answer = lambda job: Reply(200, bytes(int(bytes(job.params[0].value))))
    for number in range(IN_A_TURN + 2):
        bench.ask(str(number), b"20" + b" " * number)
        bench.clock.advance(1.5)

    bench.ask("large", b"46000")
    bench.clock.advance(1.5)

    assert (len(bench.cache), bench.full) == (2, 1)
    assert bench.cache.bytes == 2 * (OVERHEAD + 20)


def test_what_is_given_back_begins_to_wait_then() -> None:
    bench = Cached(batch_size=1)
    bench.engine.answer = lambda job: Reply(400, b"no")
    bench.ask("first")
    second = bench.ask("second")

    bench.clock.advance(1.1)

    assert second.queued == pytest.approx(second.arrived + 1.0)
    trace = list(bench.model.traffic.trace)
    assert trace == sorted(trace)


def test_what_no_worker_ran_says_nothing_of_how_fast_they_are(bench: Cached) -> None:
    bench.ask("first")
    bench.after(2.0, "second")

    assert sum(bench.metrics.fine.counts) == 1
    assert bench.metrics.named.requests + bench.metrics.unnamed.requests == 2


@said_in("seconds.txt")
def test_a_handler_says_how_long_its_answer_may_be_given(given: str) -> str:
    return f"{seconds_of(Reply(200, b'a', headers=json.loads(given)), 60.0)}"


def test_answers_leave_in_the_order_in_which_they_were_asked_for() -> None:
    room = 2 * (OVERHEAD + len(b"answer to a"))
    bench = Cached(most=room)
    for name in ("a", "b"):
        bench.ask(name, name.encode())
        bench.clock.advance(2.0)
    bench.ask("again-a", b"a")

    bench.ask("c", b"c")
    bench.clock.advance(2.0)
    bench.ask("still-a", b"a")
    bench.ask("no-b", b"b")
    bench.clock.advance(2.0)

    assert bench.sent == ["a", "b", "c", "no-b"]
    assert (bench.cache.bytes, len(bench.cache), bench.full) == (room, 2, 2)
