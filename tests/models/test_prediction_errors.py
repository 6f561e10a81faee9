"""The latest failed predictions of a version are kept with their tracebacks, and no more than a few."""

import time
from functools import partial

from tests.kit.version import StubVersion
from tsctl.daemon.api.management.describe import describe
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.models.reporting.reports import KEPT, LONGEST_MESSAGE, LONGEST_TRACEBACK, PredictionError


def kept(bench: StubVersion) -> list[PredictionError]:
    return bench.model.reports.errors.latest()


def answering(bench: StubVersion, *replies: Reply) -> list[PredictionError]:
    """Let a request be answered by each of these."""
    for number, reply in enumerate(replies):
        bench.engine.answer = partial(_same, reply)
        bench.send(f"r{number}")
        bench.clock.advance(5.0)
    return kept(bench)


def _same(reply: Reply, job: Job) -> Reply:
    return reply


def test_a_failed_prediction_is_kept_with_its_traceback() -> None:
    bench = StubVersion()

    (error,) = answering(bench, Reply(503, b"no such word", error="E", traceback="Traceback …\nKeyError: 'a'"))

    assert abs(error.time - time.time()) < 60
    assert error[1:] == (503, "no such word", "Traceback …\nKeyError: 'a'", "r0", 1)
    assert describe(bench.model)["tsctl"]["errors"] == [error._asdict()]


def test_a_good_answer_and_one_for_the_client_to_mend_are_no_failures() -> None:
    assert answering(StubVersion(), Reply(200, b""), Reply(422, b"not this", error="E")) == []


def test_requests_of_a_batch_that_failed_together_are_one_and_the_first_is_named() -> None:
    bench = StubVersion(batch_size=3, policy="greedy")
    reply = Reply(500, b"no", error="E", traceback="Traceback of this batch")
    bench.engine.answer = lambda job: reply

    bench.send("a", "b", "c")
    bench.clock.advance(5.0)

    assert [(each.request, each.requests) for each in kept(bench)] == [("a", 3)]


def test_two_batches_that_failed_alike_are_two() -> None:
    first, second = (Reply(500, b"no", error="E", traceback="".join(["Trace", "back"])) for _ in range(2))

    assert len(answering(StubVersion(), first, second)) == 2


def test_only_the_latest_are_kept_and_their_texts_are_bounded() -> None:
    long = Reply(500, b"\xff" * 5000, error="E", traceback="a" * 50_000 + "KeyError")

    others = [Reply(500, b"%d" % number, error="E") for number in range(KEPT - 1)]

    errors = answering(StubVersion(), Reply(500, b"forgotten"), long, *others)

    assert [each.message for each in errors[1:]] == [str(number) for number in range(KEPT - 1)]
    assert len(errors) == KEPT and len(errors[0].message) == LONGEST_MESSAGE
    assert errors[0].traceback.endswith("KeyError") and len(errors[0].traceback) < LONGEST_TRACEBACK + 100


def test_a_batch_that_a_dying_worker_leaves_is_a_failure_unless_it_runs_again() -> None:
    bench = StubVersion(batch_size=3, policy="greedy")
    left, *_ = bench.send("left", "a", "b")
    bench.model.abandon(left)
    bench.workers[0].die("killed by SIGKILL", retry=False)

    (error,) = kept(bench)
    assert (error.status, error.message, error.request, error.requests) == (
        500, "the worker ended: killed by SIGKILL", "a", 2,
    )  # fmt: skip

    again = StubVersion()
    again.send("a")
    again.workers[0].die("killed by SIGKILL", retry=True)
    assert kept(again) == []
