"""A request takes the cores from a copy at once; the copy goes on in the next idle time, and loses nothing."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import Stopping
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.extensions.shadowing.idle_time import QUIET, IdleTime, is_idle
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

ASKED = RequestFacts("POST", "/predictions/m", 0.0, None, "", None)
TOOK = 1.0  # seconds of each batch


class AskedVersion(StubVersion):
    """A version whose requests its watchers see."""

    def submit(self, name: str, *given: Any, **further: Any) -> Job:
        self.show(self.client.job(name))
        return super().submit(name, *given, **further)

    def show(self, job: Job) -> None:
        for watcher in self.model.watchers:
            watcher.watch(job, ASKED)


class Answering:
    """Answers each request at once, as a cache does."""

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        job.answer(Reply(200, b"kept"))
        return True


class Idling:
    """A version that answers clients, its shadow, which runs a copy for a while, and another model."""

    def __init__(self, cores: int = 2) -> None:
        self.clock = FakeClock()
        self.main = AskedVersion(clock=self.clock, version="1.0", cores=cores)
        self.shadow = AskedVersion(clock=self.clock, version="2.0", cores=cores)
        self.other = AskedVersion(clock=self.clock, name="other", cores=cores)
        self.idle_time = IdleTime(self.clock, self.others)
        self.copies: list[str] = []
        self.clock.advance(1.0)

    def others(self) -> tuple[Iterable[ModelVersion], Iterable[ModelVersion]]:
        return [self.main.model, self.shadow.model, self.other.model], [self.main.model]

    def copy(self, name: str) -> None:
        job = self.shadow.client.job(name, b"x")
        deliver = job._deliver

        def answered(reply: object) -> None:
            self.copies.append(name)
            self.idle_time.end_copy()
            deliver(reply)  # type: ignore[arg-type]

        job._deliver = answered
        self.idle_time.run_copy(self.shadow.model, job)
        self.clock.settle()

    @property
    def suspended(self) -> bool:
        [worker] = self.shadow.engine.workers
        return worker.suspended


@pytest.fixture
def bench() -> Idling:
    return Idling()


def test_a_copy_without_requests_runs_through(bench: Idling) -> None:
    bench.copy("a")
    bench.clock.advance(TOOK)

    assert bench.copies == ["a"] and not bench.suspended


@pytest.mark.parametrize("asked", ["main", "other"])
def test_a_request_to_any_model_suspends_a_copy_until_it_is_answered_and_a_while_has_passed(
    asked: str, bench: Idling
) -> None:
    bench.copy("a")
    bench.clock.advance(TOOK / 2)

    getattr(bench, asked).submit("r")
    assert bench.suspended
    bench.clock.advance(TOOK + QUIET / 2)
    assert bench.suspended and bench.copies == []
    bench.clock.advance(2 * QUIET)
    assert not bench.suspended
    bench.clock.advance(TOOK / 2)

    assert bench.copies == ["a"]


def test_a_client_that_asks_again_at_once_suspends_a_copy_once(bench: Idling) -> None:
    bench.copy("a")

    for number in range(20):
        bench.main.submit(str(number))
        bench.clock.advance(TOOK + QUIET / 2)
        assert bench.suspended

    assert bench.copies == []


def test_a_request_that_no_worker_runs_suspends_nothing(bench: Idling) -> None:
    bench.other.model.watchers = (Answering(),)
    bench.copy("a")

    bench.other.show(bench.other.client.job("r"))

    assert bench.other.client.answered == ["r"] and not bench.suspended


def test_a_job_that_the_shadow_is_given_past_its_watchers_waits_for_no_idle_time(bench: Idling) -> None:
    bench.copy("a")
    bench.main.submit("r")
    bench.shadow.model.submit(bench.shadow.client.job("metadata"))
    assert bench.suspended

    bench.clock.advance(QUIET)

    assert not bench.suspended


def test_a_request_does_not_suspend_a_shadow_where_such_a_job_waits(bench: Idling) -> None:
    bench.copy("a")
    bench.shadow.model.submit(bench.shadow.client.job("metadata"))

    bench.main.submit("r")

    assert not bench.suspended


def test_a_client_that_asks_the_shadow_itself_is_not_suspended_with_the_copy(bench: Idling) -> None:
    bench.copy("a")
    bench.main.submit("r")
    assert bench.suspended

    bench.shadow.submit("named")
    assert not bench.suspended
    bench.main.submit("r2")
    assert not bench.suspended, "the client's request would wait"
    bench.clock.advance(2 * TOOK)

    assert bench.copies == ["a"] and bench.shadow.client.answered == ["a", "named"]


def test_a_shadow_that_runs_a_clients_request_is_not_suspended(bench: Idling) -> None:
    bench.shadow.up(2)
    bench.clock.advance(1.0)
    bench.shadow.submit("named")
    bench.clock.settle()
    bench.copy("a")

    bench.main.submit("r")

    assert not any(worker.suspended for worker in bench.shadow.engine.workers)


def test_a_second_copy_beside_the_first_is_suspended_with_it(bench: Idling) -> None:
    bench.shadow.up(2)
    bench.clock.advance(1.0)
    bench.copy("a")
    bench.copy("b")

    bench.main.submit("r")
    assert all(worker.suspended for worker in bench.shadow.engine.workers)
    bench.clock.advance(2 * TOOK + 3 * QUIET)

    assert bench.copies == ["a", "b"]


def test_requests_are_watched_only_while_copies_run(bench: Idling) -> None:
    bench.copy("a")
    assert bench.main.model.watchers
    bench.clock.advance(TOOK)

    assert not any(model.watchers for model in bench.others()[0])


def test_a_refused_copy_leaves_nothing_behind(bench: Idling) -> None:
    bench.shadow.model.stop()

    with pytest.raises(Stopping):
        bench.copy("a")

    assert not any(model.watchers for model in bench.others()[0])


def test_a_released_copy_goes_on(bench: Idling) -> None:
    bench.copy("a")
    bench.main.submit("r")

    bench.idle_time.release()
    assert not bench.suspended
    bench.clock.advance(TOOK)

    assert bench.copies == ["a"]


def test_a_suspended_shadow_that_is_drained_goes_on(bench: Idling) -> None:
    bench.copy("a")
    bench.main.submit("r")

    bench.shadow.model.pool.drain(30.0)
    bench.clock.advance(TOOK)

    assert bench.copies == ["a"] and bench.shadow.model.pool.empty


@pytest.mark.parametrize(("cores", "idle"), [(2, False), (4, True)])
def test_a_copy_runs_beside_another_models_request_where_that_leaves_it_its_cores(cores: int, idle: bool) -> None:
    bench = Idling(cores)
    for each in (bench.main, bench.shadow, bench.other):
        each.model.pool.choose_threads(2)
    bench.other.submit("r")
    bench.clock.settle()

    assert is_idle(*bench.others(), bench.shadow.model) is idle
