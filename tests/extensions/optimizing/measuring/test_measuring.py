"""Each set is measured in a worker of its own, of which one runs at a time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.kit.at_once import AtOnce
from tests.kit.build import make_spec
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.extensions.optimizing.measuring.candidates import OptimizationSet
from tsctl.daemon.extensions.optimizing.measuring.harness import HarnessLoadFailed, SampleFailed
from tsctl.daemon.extensions.optimizing.measuring.rows import Measuring, NothingToOptimize, reason_of
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.state import WorkerState
from tsctl.daemon.workers.stub import StubEngine, StubWorker
from tsctl.handlers.wire import Loaded, Optimized

PLAIN, BF16, INT8, COMPILE = (OptimizationSet((name,)) for name in ("none", "bf16", "int8", "compile"))
DONE = Reply(200, b"done")


class Choosy(StubEngine):
    """Loads a set as told: refuses it, or reports outcomes; notes how many workers ran at the same time."""

    def __init__(
        self,
        refusals: dict[str, str] | None = None,
        outcomes: dict[str, Sequence[Optimized]] | None = None,
        answer: Callable[[Job], Reply] = lambda job: DONE,
    ) -> None:
        super().__init__(AtOnce(asyncio.get_running_loop()), answer=answer)
        self.refusals, self.outcomes = refusals or {}, outcomes or {}
        self.alive: list[int] = []

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        name = ",".join(spec.told["optimize"])
        reason = self.refusals.get(name)
        self.load_failure = None if reason is None else LoadFailure(reason)
        self.report = Loaded(0.0, own_handle=False, optimized=list(self.outcomes.get(name, ())))
        worker = super().start_worker(spec, events, batches)
        self.alive.append(sum(each.state is not WorkerState.EXITED for each in self.workers))
        return worker


def measuring(engine: StubEngine, told: list[tuple[str, dict[str, Any]]] | None = None) -> Measuring:
    def tell(stage: str, **facts: Any) -> None:
        if told is not None:
            told.append((stage, facts))

    return Measuring(engine, engine.clock, make_spec(batch_size=4), 3, [Param("body", "", b"x")], 0.0, tell)


async def test_one_worker_after_the_other_runs_full_batches_and_the_plain_model_again_at_the_end() -> None:
    engine = Choosy()

    rows, _ = await measuring(engine).run([PLAIN, BF16])

    assert [worker.spec.told["optimize"] for worker in engine.workers] == [["none"], ["bf16"], ["none"]]
    assert engine.alive == [1, 1, 1]
    assert {len(batch.jobs) for worker in engine.workers for batch in worker.batches} == {4}
    assert {worker.spec.threads for worker in engine.workers} == {3}
    assert [row.optimize for row in rows] == ["none", "bf16"]


async def test_the_report_of_the_worker_is_in_the_row() -> None:
    fold = Optimized("fold", True, 1e-6, 0.1)
    engine = Choosy(outcomes={"int8": [fold, Optimized("int8", True, 0.02, 1.0, agreement=0.98)]})

    rows, _ = await measuring(engine).run([PLAIN, INT8])

    assert (rows[1].drift, rows[1].agreement) == (0.02, 0.98)
    assert [each["name"] for each in rows[1].outcomes] == ["fold", "int8"]
    assert (rows[0].drift, rows[0].agreement) == (None, None)


async def test_a_set_that_the_worker_refuses_is_a_row_with_the_reason() -> None:
    engine = Choosy({"bf16": "HandlerError: `optimize: bf16` cannot be done: it needs AVX512_BF16"})

    rows, _ = await measuring(engine).run([PLAIN, BF16, INT8])

    assert [(row.refused, row.per_second is None) for row in rows] == [
        ("", False),
        ("it needs AVX512_BF16", True),
        ("", False),
    ]


async def test_an_optimisation_that_found_nothing_to_do_is_missing_in_its_row() -> None:
    idle = Optimized("int8", False, None, 0.0, "no layer of that kind", idle=True)
    default = Optimized("fold", False, 0.5, 0.0, "its drift is too large")
    engine = Choosy(outcomes={"int8": [default, idle]})

    rows, _ = await measuring(engine).run([PLAIN, INT8])

    assert rows[1].missing == "int8 was left out: no layer of that kind"


async def test_a_set_whose_model_cannot_answer_is_a_refused_row() -> None:
    def answer(job: Job) -> Reply:
        return Reply(500, b"RuntimeError: no\nTraceback", error="E") if len(engine.workers) == 2 else DONE

    engine = Choosy(answer=answer)

    rows, _ = await measuring(engine).run([PLAIN, BF16])

    assert rows[1].refused == "cannot answer the request: RuntimeError: no"


async def test_where_all_is_refused_for_one_reason_the_measuring_ends() -> None:
    reason = "cannot be done: the handler is not a subclass of BaseHandler"
    engine = Choosy({name: f"HandlerError: `optimize: {name}` {reason}" for name in ("bf16", "int8", "compile")})

    with pytest.raises(NothingToOptimize, match=r"^the handler is not a subclass of BaseHandler$"):
        await measuring(engine).run([PLAIN, BF16, INT8, COMPILE])
    assert len(engine.workers) == 3, "the third set is not tried"


async def test_a_plain_model_that_does_not_load_ends_the_measuring() -> None:
    with pytest.raises(HarnessLoadFailed, match="OSError: no weights"):
        await measuring(Choosy({"none": "OSError: no weights"})).run([PLAIN, BF16])


async def test_a_plain_model_that_cannot_answer_ends_the_measuring() -> None:
    with pytest.raises(SampleFailed, match="ValueError: no"):
        await measuring(Choosy(answer=lambda job: Reply(500, b"ValueError: no", error="E"))).run([PLAIN, BF16])


async def test_progress_counts_the_sets_and_the_last_measurement() -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    await measuring(Choosy(), told).run([PLAIN, BF16])

    steps = [(facts["optimize"], facts["done"], facts["total"]) for stage, facts in told if stage == "loading"]
    assert steps == [("none", 0, 3), ("bf16", 1, 3), ("none", 2, 3)]


def test_a_reason_without_names_in_front_stays_whole() -> None:
    assert reason_of("the worker exited while it was loading") == "the worker exited while it was loading"
