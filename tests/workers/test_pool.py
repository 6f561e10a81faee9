"""As many workers as wanted, replaced when they exit, unless that is hopeless."""

from collections.abc import Sequence

import pytest

from tests.kit.build import make_spec
from tests.kit.pool import Heard, StubPool
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.pool import Pool
from tsctl.daemon.workers.slot import SlotState
from tsctl.daemon.workers.state import WorkerState
from tsctl.daemon.workers.stub import StubEngine, StubWorker
from tsctl.handlers.wire import Loaded

BROKEN = LoadFailure("ValueError: bad weights", "Traceback …")


def test_a_pool_tells_of_each_worker_that_it_starts_and_of_each_that_is_gone() -> None:
    bench = StubPool(wanted=2)
    bench.give_batch()
    bench.pool.scale(0)
    before = bench.heard.changes

    bench.clock.advance(1.0)

    assert bench.heard.started == 2
    assert bench.pool.empty and bench.heard.changes > before


def test_a_retry_starts_anew_with_a_clean_record() -> None:
    bench = StubPool(wanted=2)
    for slot in bench.pool.slots:
        slot.failures = [bench.clock.now()] * 4
    for worker in tuple(bench.workers):
        worker.die("killed by SIGSEGV")
    assert bench.states == ["GAVE_UP", "GAVE_UP"] and bench.pool.given_up == 2
    bench.pool.crashes = 3

    bench.pool.retry()
    assert (
        bench.pool.crashes == 0
        and bench.pool.failure is None
        and bench.pool.last_exit is None
        and bench.pool.given_up == 0
    )
    bench.clock.advance(0.01)

    assert bench.states == ["UP", "UP"]
    assert [slot.failures for slot in bench.pool.slots] == [[], []]


def test_models_that_have_more_threads_together_than_there_are_cores_are_warned_of() -> None:
    one, other = (StubPool(wanted=1, cores=4).pool for _ in range(2))

    assert one.crowded_with([one]) is None
    assert "2 models share 4 cores with 8 threads" in str(one.crowded_with([one, other]))


def test_where_no_worker_is_the_gpus_are_those_on_which_so_many_would_start() -> None:
    bench = StubPool(devices=(0, 1))
    assert bench.pool.gpus_of(3) == {0: 2, 1: 1}

    bench.pool.scale(1)

    assert bench.pool.gpus_of(3) == {0: 1}


def test_a_worker_that_does_not_read_is_offered_again_when_it_does_unless_it_is_leaving() -> None:
    bench = StubPool(wanted=1)
    before = bench.heard.idle

    bench.workers[0].congest(True)
    assert (bench.pool.idle, bench.heard.idle) == (0, before)
    bench.workers[0].congest(False)

    assert (bench.pool.idle, bench.heard.idle) == (1, before + 1)

    bench.give_batch()
    bench.pool.drain(grace=100.0)
    bench.workers[0].congest(True)
    bench.workers[0].congest(False)

    assert (bench.pool.idle, bench.pool.granting) == (0, 0)


def test_a_load_that_has_failed_is_told_before_its_process_has_ended() -> None:
    bench = StubPool(wanted=1)
    before = bench.heard.changes

    bench.pool.load_failed(bench.workers[0], BROKEN)

    assert (bench.pool.failure, bench.heard.changes) == (BROKEN, before + 1)


def test_killing_ends_even_those_that_are_leaving() -> None:
    bench = StubPool(wanted=2)
    bench.give_batch()
    bench.pool.drain(grace=100.0)

    bench.pool.kill()

    assert bench.pool.empty and {worker.state for worker in bench.workers} == {WorkerState.EXITED}


@pytest.mark.parametrize(
    ("workers", "devices", "elsewhere", "expected"),
    [
        pytest.param(2, (), False, None, id="there is a core for each"),
        pytest.param(
            3, (), False, "3 workers share 2 cores and slow each other down; at most 2 would be faster", id="not"
        ),
        pytest.param(2, (0, 1), False, None, id="there is a GPU for each"),
        pytest.param(3, (0, 1), False, "each of the 2 GPUs has a worker", id="there is none for the third"),
        pytest.param(9, (), True, None, id="a cluster finds room itself"),
    ],
)
def test_whether_there_is_room_for_so_many_workers(
    workers: int, devices: Sequence[int], elsewhere: bool, expected: str | None
) -> None:
    clock = FakeClock()
    spec = make_spec(devices=devices, engine=StubEngine(clock) if elsewhere else None)
    pool = Pool(StubEngine(clock), spec, clock, Heard(), cores=2)
    pool.wanted = workers

    assert pool.shortage_with(workers) == expected
    assert pool.oversubscription == (None if devices else expected)


def test_the_threads_that_the_handler_has_set_count_in_the_room_for_one_more_worker() -> None:
    clock = FakeClock()
    engine = StubEngine(clock, report=Loaded(0.0, own_handle=False, threads=4))
    pool = Pool(engine, make_spec(), clock, Heard(), cores=8)
    pool.scale(2)
    clock.settle()

    assert pool.shortage_with(2) is None
    assert "the handler has set 4 threads itself" in (pool.shortage_with(3) or "")


class ExhaustedEngine(StubEngine):
    """A machine without a free process, `failures` times."""

    failures = 2

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        if self.failures:
            self.failures -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return super().start_worker(spec, events, batches)


def test_a_process_that_cannot_be_started_takes_no_gpu_and_is_tried_again() -> None:
    clock = FakeClock()
    engine = ExhaustedEngine(clock)
    pool = Pool(engine, make_spec(devices=(0, 1, 2)), clock, Heard(), cores=1, placement=Placement(3))
    pool.scale(1)
    assert pool.failure == LoadFailure("cannot start a process: Resource temporarily unavailable", permanent=False)

    clock.advance(0.6)
    assert pool.slots[0].state is SlotState.BACKOFF

    clock.advance(1.0)
    assert pool.ready == 1 and pool.failure is None
    assert [worker.gpu_ids for worker in engine.workers] == [(0,)]


def test_workers_compute_nothing_while_they_are_suspended() -> None:
    bench = StubPool(wanted=1)
    bench.give_batch()

    bench.pool.suspend()
    bench.clock.advance(5.0)
    assert bench.heard.outcomes == []
    bench.pool.resume()
    bench.clock.advance(1.0)

    assert len(bench.heard.outcomes) == 1


def test_a_pool_that_gave_up_starts_nobody_and_can_be_emptied() -> None:
    bench = StubPool()
    assert repr(bench.pool) == "<Pool 0/0 ready, 0 idle, 0 leaving: no slots>"
    bench.pool.give_up(BROKEN)

    bench.pool.reconcile()

    assert bench.pool.hopeless and bench.pool.failure is BROKEN and bench.workers == []
    bench.pool.drain(0.0)
    assert bench.pool.empty


def test_the_threads_of_all_workers_are_counted_where_they_share_our_processors() -> None:
    bench = StubPool(wanted=4, cores=8)
    on_a_card = Pool(bench.engine, make_spec(devices=(0,)), bench.clock, Heard(), cores=8)
    on_a_card.scale(4)

    assert (bench.pool.threads_in_all, on_a_card.threads_in_all) == (8, 0)


def test_the_threads_that_a_model_chooses_are_told_its_workers_at_once() -> None:
    clock = FakeClock()
    engine = StubEngine(clock)
    pool = Pool(engine, make_spec(), clock, Heard(), cores=8, chosen_threads=6)
    pool.scale(2)
    clock.settle()

    pool.choose_threads(3)
    chosen = [worker.threads for worker in engine.workers]
    pool.choose_threads(None)

    assert chosen == [3, 3] and pool.threads == 6
