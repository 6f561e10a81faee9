"""A trial runs beside what is served; what it chooses takes over, is remembered, and is never a reason to fail."""

from pathlib import Path

from tests.extensions.optimizing.trying import FASTER, SLOWER, Bench, row
from tests.kit.daemon import NEVER, until
from tsctl.daemon.extensions.optimizing.due import ATTEMPTS, LEAST_BUSY, PAUSES
from tsctl.daemon.extensions.optimizing.trial import TrialState
from tsctl.daemon.extensions.optimizing.trials import LOOK_EVERY
from tsctl.daemon.models.archives.sample import Sample
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.handlers.wire import Loaded, Optimized


async def trying(root: Path) -> Bench:
    """Return a daemon whose model has a trial that has begun."""
    bench = Bench(root)
    await bench.serve()
    await bench.begin()
    return bench


async def test_the_chosen_set_takes_over_as_the_same_version(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    old = bench.model
    assert (bench.state, old.state) == (TrialState.TRYING, ModelState.READY)

    await bench.end(FASTER)
    await bench.look()

    await until(lambda: bench.model is not old)
    assert bench.state is TrialState.CHOSEN
    assert bench.trial is not None and bench.trial.chosen == ("compile",)
    assert bench.orders_of_workers == [None, ["auto", "compile"]]
    await until(lambda: old.pool.empty)
    await until(lambda: bench.told[-1] == "optimized")
    assert bench.told == ["trial-started", "trial-ended", "replaced", "optimized"]
    assert (bench.model.version, bench.unpacked) == ("1.0", 1)


async def test_a_trial_begins_with_a_look_each_second_until_the_daemon_settles(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve()
    bench.time.advance(LOOK_EVERY)
    idle = bench.trials.idle

    bench.trials.begin()
    bench.time.advance(LOOK_EVERY)
    await until(lambda: bench.running)
    await bench.trials.settle(replaced=False)
    bench.time.advance(LOOK_EVERY)

    assert (idle, bench.broken_off, bench.trials.idle) == (True, 1, True)


async def test_no_request_fails_while_it_takes_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.engine.batch_time = lambda size: NEVER
    old = await bench.serve()
    old.submit(bench.client.job("running"))
    await until(lambda: old.dispatcher.running == 1)
    old.submit(bench.client.job("waiting"))
    await bench.begin()
    await bench.end(FASTER)
    await bench.look()
    await until(lambda: bench.model is not old)

    bench.engine.batch_time = lambda size: 0.0
    bench.model.submit(bench.client.job("new"))
    bench.engine.workers[0]._finish(0.0)

    await until(lambda: len(bench.client.statuses) == 3)
    assert bench.client.statuses == {"running": 200, "waiting": 200, "new": 200}


async def test_the_sets_and_the_way_to_run_them_are_ordered(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve(config="optimize: auto\noptimizeTolerance: {bf16: 0.02}\nbatchSize: 4\n")

    await bench.begin()

    [order] = bench.orders
    assert order["trial"]["sets"] == [(), ("none",), ("compile",), ("onnxruntime",), ("bf16",), ("bf16", "compile")]
    assert order["model"]["settings"]["batchSize"] == 4
    assert order["trial"]["threads"] == bench.model.pool.threads
    assert order["model"]["directory"] == str(bench.model.source.directory)
    assert order["contentType"] == "image/png"
    await bench.trials.settle(replaced=False)


async def test_a_restart_begins_with_what_was_chosen_and_makes_no_trial(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    await bench.end(FASTER)
    await bench.look()
    await until(lambda: bench.state is TrialState.CHOSEN)

    again = Bench(tmp_path)
    await again.start()
    await until(lambda: again.model.state is ModelState.READY)
    await again.look()

    assert again.orders_of_workers == [["auto", "compile"]]
    assert (again.state, again.orders) == (TrialState.CHOSEN, [])


async def test_nothing_faster_is_remembered_too(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    old = bench.model
    await bench.end(SLOWER)
    await bench.look()
    assert bench.state is TrialState.KEPT and bench.model is old

    again = Bench(tmp_path)
    await again.start()
    await again.look()

    assert (again.state, again.orders) == (TrialState.KEPT, [])


async def test_another_archive_has_a_trial_of_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve(config="optimize: auto\n")
    await bench.begin()
    await bench.end(SLOWER)

    again = Bench(tmp_path)
    await again.serve(config="optimize: auto\nbatchSize: 16\n")

    assert (bench.state, again.state) == (TrialState.KEPT, TrialState.WAITING)


async def test_one_that_fails_is_tried_again_after_a_pause_and_not_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    old = await bench.serve()
    for attempt, pause in enumerate(PAUSES, 1):
        await bench.begin()
        await bench.end("its process ended without a result")
        assert bench.state is TrialState.WAITING
        bench.trials.look()
        assert bench.trials.idle and len(bench.orders) == attempt, "not at once"
        bench.time.advance(pause)

    await bench.begin()
    await bench.end("its process ended without a result")
    await bench.look()

    assert (bench.state, len(bench.orders)) == (TrialState.FAILED, ATTEMPTS)
    assert bench.told.count("trial-failed") == ATTEMPTS
    assert bench.model is old and old.state is ModelState.READY
    again = Bench(tmp_path)
    await again.start()
    await again.look()
    assert (again.state, again.orders) == (TrialState.FAILED, [])


async def test_trials_that_end_the_daemon_with_them_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve()
    await bench.begin()  # and the daemon is killed

    for _ in range(ATTEMPTS - 1):
        bench = Bench(tmp_path)
        await bench.come_back()
        await bench.begin()
    bench = Bench(tmp_path)
    await bench.start()

    assert bench.state is TrialState.FAILED


async def test_an_unsure_result_is_a_failure_of_the_moment(tmp_path: Path) -> None:
    bench = await trying(tmp_path)

    await bench.end([*FASTER[:2], row("compile", 1.25, sure=False)])

    assert bench.state is TrialState.WAITING
    assert "the machine was too busy to tell which set is faster; another attempt follows" in bench.last_text


async def test_one_that_is_chosen_and_cannot_be_loaded_leaves_the_version_and_is_not_chosen_again(
    tmp_path: Path,
) -> None:
    bench = await trying(tmp_path)
    old = bench.model
    await bench.end(FASTER)
    bench.engine.load_failure = LoadFailure("RuntimeError: no")
    await bench.look()
    await until(lambda: bench.state is TrialState.FAILED)

    assert bench.model is old and old.state is ModelState.READY
    assert "compile was chosen, and its workers could not be started" in bench.last_text
    again = Bench(tmp_path)
    await again.start()
    assert (again.state, again.orders_of_workers[0]) == (TrialState.FAILED, None)


async def test_where_workers_cannot_be_loaded_as_chosen_it_is_forgotten_and_tried_again(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    await bench.end(FASTER)
    left_out = Optimized("compile", False, None, 0.0, "its code is not kept compiled here")
    bench.engine.report = Loaded(0.0, own_handle=False, optimized=[left_out])
    await bench.look()
    await until(lambda: bench.state is TrialState.CHOSEN)
    await bench.look()

    assert bench.state in (TrialState.WAITING, TrialState.TRYING)
    assert bench.told.count("trial-failed") == 1
    again = Bench(tmp_path)
    await again.start()
    assert again.orders_of_workers[0] is None
    await bench.trials.settle(replaced=False)


async def test_a_version_that_is_removed_ends_its_trial_which_does_not_count(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    trial = bench.trial

    await bench.registrar.unregister("m", None)
    bench.trials.look()
    await until(lambda: bench.trials.idle)

    assert bench.broken_off == 1
    assert trial is not None and trial.record is not None and trial.record.attempts == 0


async def test_a_stop_ends_the_trial(tmp_path: Path) -> None:
    bench = await trying(tmp_path)

    await bench.trials.settle(replaced=False)

    assert (bench.broken_off, bench.state) == (1, TrialState.WAITING)


async def test_an_upgrade_ends_the_trial_and_none_begins_until_it_is_over(tmp_path: Path) -> None:
    bench = await trying(tmp_path)

    bench.registrar.gate.close()
    bench.trials.look()
    await until(lambda: bench.trials.idle)
    await bench.look()
    assert (bench.broken_off, len(bench.orders)) == (1, 1)

    bench.registrar.gate.open()
    await bench.begin()
    await bench.trials.settle(replaced=False)


async def test_what_was_chosen_waits_for_the_end_of_an_upgrade(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    old = bench.model
    await bench.end(FASTER)
    bench.registrar.gate.close()
    await bench.look()
    assert (bench.state, bench.model) == (TrialState.SWITCHING, old)

    bench.registrar.gate.open()
    await bench.look()

    await until(lambda: bench.state is TrialState.CHOSEN)


async def test_a_changed_batch_size_ends_the_trial_for_one_of_its_own(tmp_path: Path) -> None:
    bench = await trying(tmp_path)
    model = bench.model

    model.change(model.settings.changed({"batch_size": 16}, "set"))
    bench.trials.look()
    await until(lambda: bench.trials.idle)
    assert bench.broken_off == 1
    await bench.begin()

    assert bench.orders[1]["model"]["settings"]["batchSize"] == 16
    await bench.trials.settle(replaced=False)


async def test_one_runs_at_a_time_in_the_whole_daemon(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve()
    other = await bench.register("m.mar", model_name="n")
    other.metrics.inference_time.observe(1.0)
    await bench.begin()

    await bench.look()

    assert len(bench.orders) == 1
    waiting = bench.trials.of(bench.registry.find("n"))
    assert waiting is not None and waiting.waits == "the trial of another model"
    await bench.trials.settle(replaced=False)


async def test_without_room_it_waits_and_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve()
    bench.room = (1 << 30, 1 << 30)
    await bench.look()
    assert bench.trial is not None and bench.trial.waits.startswith("memory: ")

    bench.room = (1, 1 << 50)
    await bench.look()

    assert len(bench.orders) == 1
    await bench.trials.settle(replaced=False)


async def test_without_a_request_to_repeat_it_waits_for_one_and_counts_no_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = await bench.serve(config="optimize: auto\n", handler="text_classifier")
    await bench.look()
    assert bench.trial is not None and bench.trial.waits.startswith("a request to repeat: name a file of the archive")
    assert bench.trial.record is not None and bench.trial.record.attempts == 0

    model.sample = Sample(b"text", "text/plain", "recorded")
    await bench.look()

    assert [order["contentType"] for order in bench.orders] == ["text/plain"]
    await bench.trials.settle(replaced=False)


async def test_a_disk_that_takes_no_record_is_no_reason_to_try_again_and_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve()
    (tmp_path / "state" / "trials").write_text("no directory")

    await bench.look()
    await bench.look()

    assert bench.orders == []
    assert bench.trial is not None and "cannot be written" in bench.trial.waits


async def test_one_that_nobody_asked_for_begins_after_much_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = await bench.serve(config="batchSize: 2\n", batches=int(LEAST_BUSY) - 1)
    await bench.look()
    assert bench.orders == []

    model.metrics.inference_time.observe(1.0)
    await bench.look()

    assert len(bench.orders) == 1
    await bench.trials.settle(replaced=False)


async def test_no_names_pin_the_defaults(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.serve(config="optimize: []\n", batches=2 * int(LEAST_BUSY))
    await bench.look()

    assert (bench.trial, bench.orders) == (None, [])


async def test_the_settings_of_a_version_stay_when_its_workers_are_renewed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    old = await bench.serve()
    await bench.registrar.scale(old, 2, 2, synchronous=True, progress=lambda stage, done, total: None)
    await bench.look()
    await bench.end(FASTER)
    await bench.look()
    await until(lambda: bench.model is not old)

    new = bench.model
    assert new.pool.ready == 2 and new.request.overrides == old.request.overrides
    assert bench.remembered["m/1.0"].request.overrides.workers == 2
    assert bench.registrar.ledger.memory.earlier == (), "no change that `tsctl rollback` would undo"
