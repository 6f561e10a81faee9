"""A model is served under one setting after the other, to clients of a process of their own."""

import pytest

from daemon.core.job import Reply
from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.load import LoadPlan
from daemon.tools.tune.measuring.harness import HarnessLoadFailed
from daemon.tools.tune.measuring.rehearsal import Rehearsal
from daemon.tools.tune.order import TuneOrder
from daemon.workers.engine import LoadFailure
from daemon.workers.stub import StubEngine
from tests.tools.tune.test_harness import make_engine

ORDER = TuneOrder(
    trace={"modelName": "net", "settings": {"startupTimeout": 60.0, "responseTimeout": 60.0}},
    worker={
        "directory": "/nowhere", "manifest": {"model": {"modelName": "net", "modelVersion": "1.0", "handler": "h"}},
        "python": None, "devices": [], "optimize": None,
    },
    seconds=0.1,
)  # fmt: skip


def rehearsal(engine: StubEngine) -> Rehearsal:
    return Rehearsal(engine, engine.clock, ORDER, b"x", LoadPlan(text="", clients=3))


def setting(batch_size: int, workers: int) -> Candidate:
    """Three clients fill batches of two, however their processes are scheduled: `fixed` waits for the second."""
    return Candidate(workers, 1, batch_size, 1.0, "fixed")


@pytest.mark.slow  # processes of clients
@pytest.mark.uvloop
async def test_workers_stay_where_only_their_batches_differ() -> None:
    engine = make_engine()
    rehearsing = rehearsal(engine)

    seen = [await rehearsing.attempt(setting(*each)) for each in ((1, 1), (2, 1), (2, 2))]
    await rehearsing.close()

    assert all(each is not None and each.p99 >= each.p50 > 0 for each in seen)
    first, *others = engine.workers
    assert len(others) == 2
    assert {len(batch.jobs) for batch in first.batches} >= {1, 2}


@pytest.mark.slow
@pytest.mark.uvloop
async def test_a_setting_under_which_requests_fail_shows_nothing() -> None:
    rehearsing = rehearsal(make_engine(lambda job: Reply(507, b"out of memory", error="E")))

    assert await rehearsing.attempt(setting(1, 1)) is None
    await rehearsing.close()


async def test_a_model_that_does_not_load_ends_it() -> None:
    rehearsing = rehearsal(make_engine(load_failure=LoadFailure("OSError: no weights", "Traceback …")))

    with pytest.raises(HarnessLoadFailed, match="OSError: no weights"):
        await rehearsing.attempt(setting(1, 1))
    await rehearsing.close()
