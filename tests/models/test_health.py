"""Each row of the table in daemon/models/reporting/model_state.py, by a version whose workers are in that state."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure

LOAD = 1.0  # seconds of a load


def made(**options: Any) -> StubVersion:
    return StubVersion(workers=0, load_time=LOAD, **options)


def ready(workers: int = 1) -> StubVersion:
    bench = made()
    bench.up(workers)
    return bench


def scaled(make: Callable[[], StubVersion], workers: int, seconds: float = LOAD / 2) -> Callable[[], StubVersion]:
    """Return how to make such a version that is scaled, so many seconds later."""

    def arrange() -> StubVersion:
        bench = make()
        bench.model.scale(workers, workers)
        bench.clock.advance(seconds)
        return bench

    return arrange


def one_of_two_has_ended() -> StubVersion:
    bench = ready(2)
    bench.workers[0].die()
    return bench


def one_of_two_has_failed() -> StubVersion:
    bench = ready()
    bench.engine.load_failure = LoadFailure("ValueError: bad weights")
    bench.up(2)
    return bench


def ended_by_a_request() -> StubVersion:
    bench = ready()
    bench.send("bad")
    bench.workers[-1].crash(retry=False)
    return bench


def ended_by_itself() -> StubVersion:
    bench = ready()
    bench.workers[-1].crash()
    return bench


def failed() -> StubVersion:
    bench = made(load_failure=LoadFailure("ValueError: bad weights"))
    bench.up()
    return bench


def tried_again() -> StubVersion:
    bench = failed()
    bench.engine.load_failure = None
    bench.model.retry()
    bench.clock.advance(LOAD / 2)
    return bench


@pytest.mark.parametrize(
    ("arrange", "ping", "is_ready", "prediction"),
    [
        pytest.param(ready, True, True, "runs", id="ready"),
        pytest.param(scaled(ready, 2), True, True, "runs", id="one of two loads"),
        pytest.param(one_of_two_has_ended, True, True, "runs", id="one of two has ended"),
        pytest.param(one_of_two_has_failed, True, True, "runs", id="one of two has failed"),
        pytest.param(made, True, False, "NoReadyWorker", id="none was asked for"),
        pytest.param(scaled(ready, 0, 9.0), True, False, "NoReadyWorker", id="scaled to none"),
        pytest.param(scaled(made, 2), True, False, "waits", id="loads at first"),
        pytest.param(scaled(scaled(ready, 0, 9.0), 1), True, False, "waits", id="loads after it was scaled to none"),
        pytest.param(tried_again, True, False, "waits", id="tried again by its operator"),
        pytest.param(ended_by_a_request, True, False, "waits", id="ended while it ran a request"),
        pytest.param(ended_by_itself, False, False, "waits", id="ended by itself"),
        pytest.param(failed, False, False, "NoReadyWorker", id="failed"),
    ],
)
def test_what_health_checks_and_predictions_answer(
    arrange: Callable[[], StubVersion], ping: bool, is_ready: bool, prediction: str
) -> None:
    bench = arrange()
    told = bench.model.healthy, bench.model.state is ModelState.READY

    try:
        bench.send("a")
        answer = "waits" if bench.model.queue.waiting else "runs"
    except DaemonError as error:
        answer = type(error).__name__

    assert (*told, answer) == (ping, is_ready, prediction)


def test_a_version_whose_workers_ended_by_themselves_is_well_again_with_the_next() -> None:
    bench = ended_by_itself()

    bench.clock.advance(30.0)

    assert bench.model.healthy
