"""Unregistering and stopping drop nobody, and leave nothing."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.core.errors import CleaningTimedOut, ModelNotFound, Stopping
from tsctl.daemon.models import retirement
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.workers.stub import StubWorker


async def test_unregistering_what_is_still_loading_leaves_the_archive_to_its_other_user(bench: StubDaemon) -> None:
    other = await bench.register(bench.mar(), model_name="other")
    bench.engine.load_time = NEVER
    loading = asyncio.ensure_future(bench.register(bench.mar(), model_name="loading"))
    await until(lambda: len(bench.engine.workers) == 2)

    await bench.registrar.unregister("loading", None)

    with pytest.raises(Stopping, match="was stopped while it was loading"):
        await loading
    assert bench.names == ["other/1.0"] and (other.source.directory / "handler.py").is_file()


async def test_unregistering_lets_requests_finish(bench: StubDaemon) -> None:
    bench.engine.batch_time = lambda size: 0.002
    model = await bench.register(bench.mar())
    for name in ("a", "b", "c"):
        model.submit(bench.client.job(name))

    await bench.registrar.unregister("m", None)

    assert bench.client.statuses == {"a": 200, "b": 200, "c": 200}
    assert (bench.names, bench.unpacked, model.pool.empty) == ([], 0, True)
    with pytest.raises(ModelNotFound):
        await bench.registrar.unregister("m", None)


async def test_a_stop_answers_everybody_ends_every_worker_and_keeps_what_the_next_run_restores(
    bench: StubDaemon,
) -> None:
    bench.engine.batch_time = lambda size: 0.002
    models = [await bench.register(bench.mar(name)) for name in ("a", "b")]
    for model in models:
        for number in range(3):
            model.submit(bench.client.job(f"{model.name}{number}"))

    await bench.registrar.stop(grace=5.0)

    assert bench.client.statuses == {f"{name}{number}": 200 for name in "ab" for number in range(3)}
    assert all(model.pool.empty for model in models)
    assert {*bench.models_dir.iterdir()} == {model.source.unpacked for model in models}


async def test_a_stop_without_grace_refuses_who_waits_and_kills_who_does_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)

    bench = StubDaemon(tmp_path)
    bench.engine.batch_time = lambda size: NEVER
    model = await bench.register(bench.mar())
    model.submit(bench.client.job("running"))
    await until(lambda: model.dispatcher.running == 1)
    model.submit(bench.client.job("waiting"))

    await bench.registrar.stop(grace=0.0)

    assert bench.client.statuses == {"running": 503, "waiting": 503}
    assert model.pool.empty


async def test_an_end_answers_everybody_and_kills_at_once_whatever_a_stop_would_wait_for(bench: StubDaemon) -> None:
    bench.engine.batch_time = lambda size: NEVER
    models = [await bench.register(bench.mar(name)) for name in ("a", "b")]
    for model in models:
        for number in range(3):
            model.submit(bench.client.job(f"{model.name}{number}"))
    await until(lambda: all(model.dispatcher.running for model in models))
    stopping = asyncio.ensure_future(bench.registrar.stop(grace=NEVER))
    await until(lambda: all(model.stopping for model in models))

    await bench.registrar.end()

    assert bench.client.statuses == {f"{name}{number}": 503 for name in "ab" for number in range(3)}
    assert all(model.pool.empty for model in models) and bench.unpacked == 2
    await stopping


async def test_a_worker_that_cannot_be_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)
    monkeypatch.setattr(StubWorker, "kill", lambda worker: None)  # as a process that the kernel does not let go

    bench = StubDaemon(tmp_path, grace="0")
    bench.engine.batch_time = lambda size: NEVER
    model = await bench.register(bench.mar())
    model.submit(bench.client.job("running"))
    await until(lambda: model.dispatcher.running == 1)

    with pytest.raises(CleaningTimedOut, match="Timed out while cleaning resources: m"):
        await bench.registrar.unregister("m", None)

    assert (bench.names, bench.remembered) == ([], {})


async def test_nothing_is_registered_after_a_stop(bench: StubDaemon) -> None:
    await bench.registrar.stop(grace=0.0)

    with pytest.raises(Stopping):
        await bench.register(bench.mar())

    assert (bench.names, bench.unpacked) == ([], 0)


async def test_a_stop_ends_what_is_being_unregistered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)

    bench = StubDaemon(tmp_path)
    bench.engine.batch_time = lambda size: NEVER
    model = await bench.register(bench.mar())
    model.submit(bench.client.job("running"))
    await until(lambda: model.dispatcher.running == 1)
    leaving = asyncio.ensure_future(bench.registrar.unregister("m", None))
    await until(lambda: model.stopping)

    await bench.registrar.stop(grace=0.0)

    assert model.pool.empty
    assert (await leaving) is model
    assert bench.unpacked == 0


async def test_a_hurried_stop_ends_what_was_still_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement, "LEAVE_TIME", 0.01)
    monkeypatch.setattr(StubWorker, "drain", lambda worker, grace: None)  # it does not leave when it is asked

    bench = StubDaemon(tmp_path)
    bench.engine.load_time = NEVER
    loading = asyncio.ensure_future(bench.register(bench.mar()))
    await until(lambda: len(bench.engine.workers) == 1)
    (model,) = bench.registry

    stopping = asyncio.ensure_future(bench.registrar.stop(grace=NEVER))
    with pytest.raises(Stopping):
        await loading
    assert bench.names == []
    stopping.cancel()
    await bench.registrar.stop(grace=0.0)

    assert model.pool.empty


async def test_a_version_that_was_unregistered_before_its_workers_started_starts_none(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=0)
    model.settings = model.settings.changed({"workers": 1, "max_workers": 1}, "set")
    model.stop()

    model.start()
    with pytest.raises(Stopping):
        await bench.registrar.scale(model, 1, 1, synchronous=False, progress=no_progress)

    assert bench.engine.workers == []
