"""An operator's commands, replacements and restarts of versions that come and go, with the whole registration."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.residency.resident_daemon import ResidentDaemon
from tests.kit.daemon import NEVER, until
from tests.models.replacements import other
from tsctl.daemon.core.errors import NoReadyWorker, WorkersFailed
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure


async def register(bench: ResidentDaemon, *, replace: bool = False, url: str = "", **overrides: Any) -> ModelVersion:
    request = Registration(url=url or bench.mar(), overrides=Overrides(loading="on_demand", **overrides))
    return await bench.registrar.register(request, replace=replace)


async def answered(bench: ResidentDaemon, model: ModelVersion, name: str) -> int:
    """Ask a version, and return the status of its answer."""
    model.submit(bench.client.job(name))
    await until(lambda: name in bench.client.answered)
    return bench.client.statuses[name]


async def test_a_model_without_a_number_of_workers_keeps_its_one_when_it_is_built_anew_to_stay(tmp_path: Path) -> None:
    bench = ResidentDaemon(tmp_path)
    model = await register(bench)
    await answered(bench, model, "a")
    change_settings(model, {"loading": "at_once"})

    new = await bench.registrar.renew(model, "the same archive")

    assert new.settings.loading == "at_once"
    assert new.pool.ready == 1


async def test_what_was_unloaded_stays_so_over_a_restart_and_comes_back_with_its_workers(tmp_path: Path) -> None:
    bench = ResidentDaemon(tmp_path)
    model = await register(bench, workers=3)
    await answered(bench, model, "a")
    await bench.registrar.unload(model)
    assert bench.remembered["m/1.0"].request.held

    restarted = await bench.restart()
    model = restarted.registry.find("m")
    with pytest.raises(NoReadyWorker, match="`tsctl load m` brings it back"):
        model.submit(restarted.client.job("b"))
    await restarted.registrar.load(model, synchronous=True, progress=no_progress)

    assert model.pool.ready == 3
    assert not restarted.remembered["m/1.0"].request.held


@pytest.mark.parametrize("command", ["load", "scale"])
async def test_what_was_scaled_to_0_is_brought_back_by_an_operator_alone(tmp_path: Path, command: str) -> None:
    bench = ResidentDaemon(tmp_path)
    model = await register(bench, workers=2)
    scale = bench.registrar.scale
    await scale(model, 0, 0, synchronous=True, progress=no_progress)
    bench = await bench.restart()
    model = bench.registry.find("m")
    with pytest.raises(NoReadyWorker):
        model.submit(bench.client.job("a"))

    if command == "load":
        await bench.registrar.load(model, synchronous=True, progress=no_progress)
    else:
        await bench.registrar.scale(model, 1, 1, synchronous=True, progress=no_progress)

    assert await answered(bench, model, "b") == 200
    assert not bench.remembered["m/1.0"].request.held


async def test_a_loaded_model_is_replaced_by_one_that_is_loaded_and_a_broken_archive_replaces_nothing(
    tmp_path: Path,
) -> None:
    bench = ResidentDaemon(tmp_path)
    old = await register(bench)
    await answered(bench, old, "a")
    bench.engine.load_failure = LoadFailure("ValueError: bad weights")
    with pytest.raises(WorkersFailed):
        await register(bench, replace=True, url=other(bench))
    assert bench.registry.find("m") is old

    bench.engine.load_failure = None
    new = await register(bench, replace=True, url=other(bench))

    assert bench.registry.find("m") is new
    assert residence_of(new).state is ResidenceState.LOADED


async def test_an_unloaded_model_is_replaced_at_once_and_those_that_wait_for_it_are_answered(tmp_path: Path) -> None:
    bench = ResidentDaemon(tmp_path)
    bench.engine.load_time = NEVER
    old = await register(bench)
    old.submit(bench.client.job("waits"))
    await until(lambda: len(bench.engine.workers) == 1)
    held = await register(bench, url=bench.mar("n"))

    new = await register(bench, replace=True, url=other(bench, "n"))
    assert bench.registry.find("n") is new and new.pool.wanted == 0
    await until(lambda: held.pool.empty and new.replaces is None)
    bench.engine.workers[0]._load()
    await until(lambda: "waits" in bench.client.answered)

    assert bench.client.statuses == {"waits": 200}


async def test_a_request_that_waits_for_a_load_is_answered_before_its_version_is_unregistered(tmp_path: Path) -> None:
    bench = ResidentDaemon(tmp_path)
    blockers = [await register(bench, url=bench.mar(name)) for name in ("x", "y")]
    model = await register(bench)
    bench.engine.load_time = NEVER
    for blocker in blockers:
        blocker.submit(bench.client.job(f"at {blocker.name}"))
    await until(lambda: len(bench.engine.workers) == 2)
    model.submit(bench.client.job("waits"))
    going = asyncio.ensure_future(bench.registrar.unregister("m", None))
    await until(lambda: model.stopping)

    bench.engine.load_time = 0.0
    bench.engine.workers[0]._load()
    await going

    assert bench.client.statuses["waits"] == 200
    assert model.pool.empty
