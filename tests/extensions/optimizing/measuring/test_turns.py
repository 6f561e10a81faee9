"""Each set is measured in turns with the set of now; in a trial as the daemon would load it."""

import asyncio
import math
from typing import Any

import pytest

from tests.extensions.optimizing.measuring.choosy import DONE, Choosy
from tests.kit.build import make_spec
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.extensions.optimizing.measuring.candidates import OptimizationSet, sets_of_trial
from tsctl.daemon.extensions.optimizing.measuring.harness import HarnessLoadFailed, SampleFailed
from tsctl.daemon.extensions.optimizing.measuring.turns import SetTurns
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.handlers.wire import Optimized

SETS = sets_of_trial([("none",), (), ("compile",)], large_jpeg=False)
PLAIN, BF16, INT8 = OptimizationSet(("none",), now=True), OptimizationSet(("bf16",)), OptimizationSet(("int8",))


def turns(
    engine: Choosy, processor_time: float = 0.0, told: list[Any] | None = None, *, trial: bool = True
) -> SetTurns:
    def tell(stage: str, **facts: Any) -> None:
        if told is not None:
            told.append((stage, facts["optimize"], facts["done"], facts["total"]))

    spec, params = make_spec(batch_size=4), [Param("body", "", b"x")]
    return SetTurns(
        engine, engine.clock, spec, 3, params, 0.0, tell, trial=trial, processor_time=lambda _: processor_time
    )


async def test_a_set_is_loaded_by_its_names_and_measured_as_the_daemon_would_load_it() -> None:
    engine = Choosy()

    rows = await turns(engine).measure_sets(SETS)

    assert [worker.spec.told["optimize"] for worker in engine.workers] == [
        [],
        ["none"],
        ["compile"],
        ["auto", "compile"],
    ]
    assert [bool(worker.batches) for worker in engine.workers] == [True, True, False, True]
    assert [row.optimize for row in rows] == ["none", "default", "compile"]
    assert {len(batch.jobs) for worker in engine.workers for batch in worker.batches} == {4}


async def test_two_workers_live_at_a_time_and_none_in_the_end() -> None:
    engine = Choosy()

    await turns(engine).measure_sets(SETS)

    assert max(engine.alive) == 2
    assert all(worker.state.name == "EXITED" for worker in engine.workers)


async def test_the_times_of_all_sets_are_beside_those_of_the_set_of_now() -> None:
    rows = await turns(Choosy()).measure_sets(SETS)

    now = next(row for row in rows if row.now)
    assert now.gain == 1.0 and now.seconds is not None
    for row in rows:
        assert row.gain is not None and row.seconds == pytest.approx(now.seconds / row.gain)
        assert row.per_second == pytest.approx(4 * row.gain / now.seconds)


@pytest.mark.parametrize(
    ("processor_time", "counted"),
    [
        pytest.param(1e-9, 1e-9, id="a load that waited for a core counts without that"),
        pytest.param(60.0, None, id="one on several cores as long as it took"),
        pytest.param(0.0, None, id="as does one of which no processor time is known"),
    ],
)
async def test_a_load_counts_without_what_it_waited_for_a_core(processor_time: float, counted: float | None) -> None:
    engine = Choosy()

    rows = await turns(engine, processor_time).measure_sets(SETS)

    now, plain, _, compiled = engine.workers
    assert [row.load for row in rows] == [counted or each.load_time for each in (plain, now, compiled)]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        pytest.param(LoadFailure("HandlerError: …", refused="it needs AVX512"), "it needs AVX512", id="refused"),
        pytest.param(LoadFailure("the worker exited"), "the worker exited", id="another failure, with all its words"),
    ],
)
async def test_a_set_that_does_not_load_is_a_row_with_the_reason_and_the_next_one_is_measured(
    failure: LoadFailure, reason: str
) -> None:
    engine = Choosy({"bf16": failure})

    rows = await turns(engine).measure_sets(sets_of_trial([("none",), (), ("bf16",), ("compile",)], large_jpeg=False))

    assert [row.refused for row in rows] == ["", "", reason, ""]
    assert rows[2].gain is None and rows[3].gain is not None


async def test_a_set_that_cannot_be_repeated_from_what_was_kept_is_missing() -> None:
    engine = Choosy(outcomes={"auto,compile": [Optimized("compile", False, None, 0.0, "not kept")]})

    rows = await turns(engine).measure_sets(SETS)

    assert rows[2].missing == "compile was left out: not kept"


async def test_a_set_whose_model_cannot_answer_is_a_refused_row() -> None:
    engine = Choosy()

    def answer(job: Job) -> Reply:
        broken = engine.workers[-1].spec.told["optimize"] == ["auto", "compile"]
        return Reply(500, b"RuntimeError: no\nTraceback", error="E") if broken and len(engine.workers) == 4 else DONE

    engine.answer = answer

    rows = await turns(engine).measure_sets(SETS)

    assert rows[2].refused == "cannot answer the request: RuntimeError: no"


async def test_where_the_set_of_now_does_not_load_there_is_no_result() -> None:
    with pytest.raises(HarnessLoadFailed):
        await turns(Choosy({"": LoadFailure("HandlerError: no")})).measure_sets(SETS)


async def test_where_the_set_of_now_cannot_answer_there_is_no_result() -> None:
    engine = Choosy(answer=lambda job: Reply(500, b"no", error="E"))

    with pytest.raises(SampleFailed):
        await turns(engine).measure_sets(SETS)
    await asyncio.sleep(0)
    assert all(worker.state.name == "EXITED" for worker in engine.workers)


def test_a_set_that_decodes_at_a_part_of_the_size_needs_a_large_sample() -> None:
    sets = [(), ("compile",), ("scaled_decode", "compile")]

    assert sets_of_trial(sets, large_jpeg=False) == [OptimizationSet((), now=True), OptimizationSet(("compile",))]
    assert len(sets_of_trial(sets, large_jpeg=True)) == 3


async def test_without_a_trial_each_set_is_loaded_once_by_its_names() -> None:
    engine, told = Choosy(), list[Any]()

    rows = await turns(engine, 1e-9, told, trial=False).measure_sets([PLAIN, BF16])

    assert [worker.spec.told["optimize"] for worker in engine.workers] == [["none"], ["bf16"]]
    assert {worker.spec.threads for worker in engine.workers} == {3}
    assert [(row.optimize, row.load) for row in rows] == [
        (name, worker.load_time) for name, worker in zip(("none", "bf16"), engine.workers, strict=True)
    ]
    assert told == [("loading", "none", 0, 2), ("loading", "bf16", 1, 2), ("measuring", "bf16", 1, 2)]


async def test_the_report_of_the_worker_is_in_the_row() -> None:
    fold, bad = Optimized("fold", True, 1e-6, 0.1), Optimized("fast_images", False, math.inf, 0.0, "it drifts")
    engine = Choosy(outcomes={"int8": [bad, fold, Optimized("int8", True, 0.02, 1.0, agreement=0.98)]})

    rows = await turns(engine, trial=False).measure_sets([PLAIN, INT8])

    assert (rows[1].drift, rows[1].agreement, rows[1].missing) == (0.02, 0.98, "")
    assert [(each["name"], each["drift"]) for each in rows[1].outcomes] == [
        ("fast_images", None),
        ("fold", 1e-6),
        ("int8", 0.02),
    ]
    assert (rows[0].drift, rows[0].agreement) == (None, None)


async def test_an_optimisation_of_the_set_that_found_nothing_to_do_is_missing_in_its_row() -> None:
    idle = Optimized("int8", False, None, 0.0, "no layer of that kind", idle=True)
    engine = Choosy(outcomes={"int8": [Optimized("fold", False, 0.5, 0.0, "its drift is too large"), idle]})

    rows = await turns(engine, trial=False).measure_sets([PLAIN, INT8])

    assert rows[1].missing == "int8 was left out: no layer of that kind"
