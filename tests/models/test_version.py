"""A version accepts what it can answer, and says why it accepts nothing."""

from typing import Any

import pytest

from tests.kit.build import make_model
from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine, StubWorker
from tests.kit.version import StubVersion
from tsctl.daemon.api import submission
from tsctl.daemon.core.job import Ending, Job, JobPhase, Param
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import BatchEvents, WorkerListener, WorkerSpec


def unloaded(**options: Any) -> StubVersion:
    """Make a version that has no worker yet; a load takes a second, and so does a batch."""
    return StubVersion(workers=0, load_time=1.0, **options)


def serving(**options: Any) -> StubVersion:
    """Make a version whose worker has loaded, or has failed to."""
    bench = unloaded(**options)
    bench.up()
    return bench


@pytest.fixture
def bench() -> StubVersion:
    return serving()


def test_a_model_is_idle_only_when_nobody_waits_for_an_answer(bench: StubVersion) -> None:
    assert bench.model.idle
    assert repr(bench.model) == (
        "<ModelVersion m/1.0 READY <Queue 0/100 jobs 0/1000000 bytes> <Pool 1/1 ready, 1 idle, 0 leaving: UP>>"
    )

    bench.submit("a")
    assert not bench.model.idle
    bench.clock.settle()
    assert not bench.model.idle

    bench.clock.advance(1.0)
    assert bench.model.idle


@pytest.mark.parametrize(
    ("before", "least", "most", "after"),
    [
        pytest.param(0, 2, 2, 2, id="up to the least"),
        pytest.param(4, 1, 2, 2, id="down to the most"),
        pytest.param(3, 1, 5, 3, id="what lies between stays"),
        pytest.param(3, 0, 0, 0, id="to nothing"),
    ],
)
def test_scaling(before: int, least: int, most: int, after: int) -> None:
    bench = unloaded()
    bench.up(before)

    bench.model.scale(least, most)

    assert bench.model.pool.wanted == after
    assert (bench.model.presence.least, bench.model.presence.most) == (least, most)


def test_listeners_hear_of_each_change() -> None:
    bench = unloaded()
    heard: list[ModelState] = []
    bench.model.listeners[lambda: heard.append(bench.model.state)] = None
    bench.up()
    assert heard == [ModelState.LOADING, ModelState.READY]

    bench.submit("a")
    bench.clock.advance(1.0)
    assert heard == [ModelState.LOADING, ModelState.READY, ModelState.READY]


def test_a_listener_may_leave_while_it_is_told() -> None:
    bench = unloaded()
    heard: list[str] = []

    def once() -> None:
        heard.append("once")
        del bench.model.listeners[once]

    bench.model.listeners[once] = None
    bench.up()

    assert heard == ["once"]


class Introduced(StubEngine):
    """Notes to whom its workers report."""

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        self.reports = events, batches
        return super().start_worker(spec, events, batches)


def test_a_worker_reports_its_batches_to_the_dispatcher_and_its_life_to_the_pool() -> None:
    clock = FakeClock()
    engine = Introduced(clock)
    model: ModelVersion = make_model(engine, clock)

    model.scale(1, 1)

    assert engine.reports == (model.pool, model.dispatcher)


class Taker:
    """A watcher of requests that takes each."""

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        return True


def test_a_request_that_a_watcher_has_taken_waits_in_no_queue_until_it_is_given_back(bench: StubVersion) -> None:
    bench.model.watchers = (Taker(),)
    taken = submit(bench, "a")
    assert taken in bench.model.taken and bench.model.waiting == 0 and bench.sent == []

    bench.model.taken.give_back(taken)
    bench.clock.advance(2.0)

    assert bench.client.statuses == {"a": 200}


def test_a_taken_request_whose_client_leaves_is_over(bench: StubVersion) -> None:
    bench.model.watchers = (Taker(),)
    taken = submit(bench, "a")

    bench.model.abandon(taken)
    bench.model.abandon(taken)

    assert taken.phase is JobPhase.ENDED and taken.ending is Ending.LEFT
    assert bench.client.statuses == {}


def test_a_refusal_of_what_is_given_back_is_its_answer() -> None:
    bench = serving(queue_jobs=1, capacity=1)
    bench.send("running")
    bench.send("waiting")
    bench.model.watchers = (Taker(),)
    taken = submit(bench, "a")

    bench.model.taken.give_back(taken)

    assert bench.client.statuses == {"a": 503}
    assert bench.metrics.refusals["queue_full"] == 1


@pytest.mark.parametrize(("refuse", "status"), [(False, 200), (True, 503)], ids=["a stop runs it", "or it is refused"])
def test_a_version_is_not_idle_while_a_watcher_has_a_request(refuse: bool, status: int, bench: StubVersion) -> None:
    bench.model.watchers = (Taker(),)
    taken = submit(bench, "a")
    bench.model.stop()
    assert not bench.model.idle

    bench.model.refuse_waiting() if refuse else bench.model.taken.give_back(taken)
    bench.clock.advance(2.0)

    assert (bench.client.statuses, bench.model.idle) == ({"a": status}, True)
    assert taken.phase is JobPhase.ENDED


def submit(bench: StubVersion, name: str) -> Job:
    """Submit a request as every protocol does."""
    job = submission.submit(
        bench.model, name, [Param("body", "", b"")], [], bench.clock.now(),
        lambda reply: bench.client.replies.append((name, reply)), lambda piece: None,
        unnamed=True, low_priority=False, budget=None, client=None, peer="", size=0, method="POST", target="/",
        began=bench.clock.now(),
    )  # fmt: skip
    bench.clock.settle()
    return job
