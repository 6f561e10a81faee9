"""Equal requests get one answer, from the cache or from one that runs, and no answer that must not be given again."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Job, JobPhase, Piece, Reply, TimeBudget
from tsctl.daemon.extensions.cache.answers import AT_ONCE, OVERHEAD, AnswerCache
from tsctl.daemon.models.request_watcher import RequestFacts

FACTS = RequestFacts("POST", "/predictions/m", 0.0, "", None)
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
        job.elsewhere = self.cache.watch(job, FACTS)
        if not job.elsewhere:
            self.model.submit(job)
        self.clock.settle()
        return job

    def after(self, seconds: float, name: str, body: bytes = b"a", **further: Any) -> Job:
        self.clock.advance(seconds)
        return self.ask(name, body, **further)

    @property
    def counted(self) -> tuple[int, int, int]:
        return self.cache.hits, self.cache.shared, self.cache.misses


def test_an_equal_request_is_answered_from_the_cache_at_once() -> None:
    bench = Cached()
    bench.ask("first")

    bench.after(3.0, "second")

    assert bench.sent == ["first"]
    reply = bench.client.reply("second")
    assert (reply.status, reply.body, list(reply.headers)) == (200, b"answer to a", [("Age", "2")])
    assert bench.counted == (1, 0, 1)
    assert bench.metrics.named.requests == 2 and bench.metrics.codes[200] == 2


@pytest.mark.parametrize("body", [b"a", LARGE], ids=["hashed at once", "hashed in a thread"])
def test_equal_requests_that_come_while_one_runs_wait_for_its_answer(body: bytes) -> None:
    bench = Cached()

    for name in ("first", "second", "third"):
        bench.ask(name, body)
    bench.clock.advance(5.0)

    assert bench.sent == ["first"]
    assert {bench.client.reply(name).body for name in ("first", "second", "third")} == {b"answer to " + body[:10]}
    assert bench.counted == (0, 2, 1)


def test_other_requests_run() -> None:
    bench = Cached()

    bench.ask("body", b"a")
    bench.ask("other-body", b"b")
    bench.ask("other-header", b"a", headers=[("X-User", "me")])
    bench.ask("other-id", b"a", headers=[("x-request-id", "7"), ("traceparent", "00-1")])
    bench.clock.advance(10.0)

    assert bench.sent == ["body", "other-body", "other-header"]
    assert bench.counted == (0, 1, 3)


def test_tensors_that_differ_in_their_head_are_other_requests() -> None:
    bench = Cached()
    for name, head in (("first", ["FP32"]), ("second", ["INT32"]), ("third", ["FP32"])):
        job = bench.client.job(name, b"a")
        job.infer = head
        job.elsewhere = bench.cache.watch(job, FACTS)
        if not job.elsewhere:
            bench.model.submit(job)
        bench.clock.advance(2.0)

    assert bench.sent == ["first", "second"]


def test_an_answer_is_given_for_its_time_and_no_longer() -> None:
    bench = Cached(seconds=5.0)
    bench.ask("first")

    bench.after(5.9, "in-time")
    bench.after(0.1, "too-late")
    bench.clock.advance(2.0)

    assert bench.sent == ["first", "too-late"]
    assert bench.cache.bytes == OVERHEAD + len(b"answer to a")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(400, b"no"), id="an error of the client"),
        pytest.param(Reply(200, b"no", error="E"), id="an error"),
        pytest.param(Reply(503, b"no"), id="a failure"),
        pytest.param(Reply(200, b"a", headers=[("Cache-Control", "No-Store")]), id="what must not be stored"),
    ],
)
def test_what_is_no_answer_to_give_again_is_not_kept_and_those_that_wait_run_themselves(reply: Reply) -> None:
    bench = Cached()
    bench.engine.answer = lambda job: reply

    for name in ("first", "second", "third"):
        bench.ask(name)
    bench.clock.advance(10.0)

    assert bench.sent == ["first", "second", "third"]
    assert (len(bench.cache), bench.counted) == (0, (0, 0, 3))


def test_a_request_that_says_no_store_is_neither_answered_from_the_cache_nor_kept() -> None:
    bench = Cached()
    private: Headers = [("Cache-Control", "no-store")]
    bench.ask("first", headers=private)

    bench.after(2.0, "second")
    bench.after(2.0, "third", headers=private)
    bench.clock.advance(2.0)

    assert bench.sent == ["first", "second", "third"]
    assert bench.counted == (0, 0, 1)


def test_a_request_that_says_no_cache_gets_a_new_answer_which_is_kept() -> None:
    bench = Cached()
    bench.ask("first")
    bench.after(4.0, "second", headers=[("Cache-Control", "max-age=0, no-cache")])

    bench.after(2.0, "third")

    assert bench.sent == ["first", "second"]
    assert ("Age", "1") in bench.client.reply("third").headers


def test_a_streamed_answer_is_not_kept_and_those_that_wait_run_themselves() -> None:
    bench = Cached()
    pieces: list[Reply] = []
    first = bench.ask("first", stream=pieces.append)
    bench.ask("second")

    first.stream(Piece(200, b"one"))
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "second"]
    assert bench.client.reply("second").body == b"answer to a"
    assert bench.counted == (0, 0, 2)


def test_where_the_request_that_runs_is_left_by_its_client_another_one_runs() -> None:
    bench = Cached(capacity=1)
    first = bench.ask("first")
    bench.ask("second")
    bench.ask("third")

    bench.model.abandon(first)
    bench.clock.advance(5.0)

    assert bench.sent == ["first", "second"]
    assert bench.client.statuses == {"second": 200, "third": 200}


@pytest.mark.parametrize("body", [b"a", LARGE], ids=["for an equal one", "for its digest"])
def test_a_client_that_leaves_while_its_request_waits_is_forgotten(body: bytes) -> None:
    bench = Cached()
    bench.ask("first", body)
    bench.clock.held = []
    second = bench.ask("second", body)
    assert second.phase is JobPhase.QUEUED and second.elsewhere

    bench.model.abandon(second)
    bench.clock.release()
    bench.clock.advance(5.0)

    assert bench.sent == ["first"]
    assert bench.client.statuses == {"first": 200}
    assert (bench.cache._waiting, bench.cache._waiting_bytes) == (0, 0)


def test_a_request_with_a_deadline_is_answered_from_the_cache_and_waits_for_no_other() -> None:
    bench = Cached()
    bench.ask("first")

    bench.ask("second", budget=TimeBudget(30.0, bench.clock.now(), "x-request-deadline-ms"))
    bench.after(5.0, "third", budget=TimeBudget(30.0, bench.clock.now(), "x-request-deadline-ms"))

    assert bench.sent == ["first", "second"]
    assert bench.counted == (1, 0, 2)


def test_no_more_requests_wait_for_others_than_may_wait_in_the_queue() -> None:
    bench = Cached(queue_jobs=2)
    for name in ("first", "second", "third"):
        bench.ask(name)
    bench.ask("fourth")

    assert (bench.cache._waiting, bench.model.waiting) == (2, 1)
    bench.clock.advance(5.0)
    assert bench.sent == ["first", "fourth"]
    assert set(bench.client.statuses.values()) == {200}


def test_a_refusal_is_the_answer_of_a_request_that_has_waited() -> None:
    bench = Cached()
    bench.ask("first")
    bench.ask("second")
    bench.engine.answer = lambda job: Reply(500, b"failed")

    bench.model.stop()
    bench.clock.advance(5.0)

    assert bench.client.statuses == {"first": 500, "second": 503}
    assert bench.metrics.refusals["stopping"] == 1


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


def test_an_answer_that_is_larger_than_the_cache_is_shared_and_not_kept() -> None:
    bench = Cached(most=OVERHEAD)
    bench.ask("first")
    bench.ask("second")
    bench.clock.advance(5.0)

    assert bench.sent == ["first"]
    assert (bench.client.statuses["second"], len(bench.cache), bench.cache.bytes) == (200, 0, 0)
