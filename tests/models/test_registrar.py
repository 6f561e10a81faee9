"""Registering leaves a served model, or nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.errors import (
    ArchiveNotFound,
    DaemonError,
    InvalidModel,
    Stopping,
    WorkersFailed,
)
from tsctl.daemon.models.archives import opening, unpack
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.state import WorkerState
from tsctl.daemon.workers.stub import StubEngine, StubWorker

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


async def test_a_registered_model_is_ready_when_the_call_returns(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar("resnet", "2.0"), workers=2)

    assert bench.names == ["resnet/2.0"] and bench.registry.find("resnet") is model
    assert model.state is ModelState.READY and model.pool.ready == 2
    assert (model.source.directory / "handler.py").is_file() and bench.unpacked == 1
    assert bench.engine.workers[0].spec.model_dir == model.source.directory


async def test_a_directory_is_served_in_place(bench: StubDaemon) -> None:
    directory = write_files(bench.store / "m", model_files())
    model = await bench.register("m")
    assert model.source.directory == directory and bench.unpacked == 0

    await bench.registrar.unregister("m", None)
    assert (directory / "handler.py").is_file()


@pytest.mark.parametrize(
    ("model", "overrides", "error"),
    [
        pytest.param({"handler": "missing.py"}, Overrides(workers=1), InvalidModel, id="a manifest that is wrong"),
        pytest.param({"configFile": "c.yaml"}, Overrides(workers=1), InvalidModel, id="a config that is missing"),
        pytest.param({}, Overrides(workers=1, batch_size=0), DaemonError, id="a wish that cannot be"),
    ],
)
async def test_a_registration_that_is_refused_leaves_nothing(
    model: dict[str, str], overrides: Overrides, error: type[DaemonError], bench: StubDaemon
) -> None:
    with pytest.raises(error):
        await bench.registrar.register(Registration(url=bench.mar(**model), overrides=overrides))

    assert (bench.names, bench.unpacked, bench.engine.workers) == ([], 0, [])


async def test_what_is_not_in_the_store_is_not_found(tmp_path: Path, bench: StubDaemon) -> None:
    with pytest.raises(ArchiveNotFound):
        await bench.register("missing.mar")
    with pytest.raises(ArchiveNotFound):
        await bench.register(str(write_mar(tmp_path / "m.mar", model_files())))

    await bench.register(str(tmp_path / "m.mar"), local_paths=True)
    assert bench.names == ["m/1.0"]


async def test_a_load_that_fails_leaves_nothing_and_tells_the_traceback(bench: StubDaemon) -> None:
    bench.engine.load_failure = BROKEN

    with pytest.raises(WorkersFailed) as caught:
        await bench.register(bench.mar(), workers=2)

    assert str(caught.value) == (
        "Failed to start workers for model m version: 1.0: ValueError: bad weights\n\n"
        "Traceback (most recent call last): …"
    )
    assert (bench.names, bench.unpacked) == ([], 0)
    assert {worker.state for worker in bench.engine.workers} == {WorkerState.EXITED}


class HalfBroken(StubEngine):
    """Only the first worker cannot load; the others come up in the same turn of the loop."""

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> StubWorker:
        self.load_failure = None if self.workers else BROKEN
        worker = super().start_worker(spec, events, batches)
        worker._engine = StubEngine(self.clock, load_failure=self.load_failure)
        return worker


async def test_one_worker_that_fails_is_a_failure_even_if_the_next_comes_up_at_once(bench: StubDaemon) -> None:
    bench.use(HalfBroken(bench.engine.clock))

    with pytest.raises(WorkersFailed, match="ValueError: bad weights"):
        await bench.register(bench.mar(), workers=2)

    assert (bench.names, bench.unpacked) == ([], 0)


async def test_an_asynchronous_failure_stays_listed_and_can_be_replaced(bench: StubDaemon) -> None:
    bench.engine.load_failure = BROKEN
    failed = await bench.register(bench.mar(), synchronous=False)
    await until(lambda: failed.state is ModelState.FAILED)
    assert bench.names == ["m/1.0"] and failed.pool.failure is BROKEN

    bench.engine.load_failure = None
    model = await bench.register(bench.mar())

    assert bench.registry.find("m") is model and model.state is ModelState.READY
    assert failed.pool.empty and bench.unpacked == 1
    assert (model.source.directory / "handler.py").is_file()


async def test_one_archive_under_two_names_is_unpacked_once_and_kept_until_both_are_gone(bench: StubDaemon) -> None:
    one = await bench.register(bench.mar(), model_name="one")
    two = await bench.register(bench.mar(), model_name="two")
    assert one.source.directory == two.source.directory and bench.unpacked == 1

    await bench.registrar.unregister("one", None)
    assert bench.unpacked == 1
    await bench.registrar.unregister("two", None)
    assert bench.unpacked == 0


async def test_an_archive_that_a_failed_registration_removed_meanwhile_is_unpacked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def unpack_and_lose(*given: Any) -> Path:
        nonlocal calls
        calls += 1
        unpacked = unpack.unpack(*given)
        if calls == 1:
            unpacked.rename(tmp_path / "lost")
        return unpacked

    bench = StubDaemon(tmp_path)
    monkeypatch.setattr(opening, "unpack", unpack_and_lose)

    assert (await bench.register(bench.mar())).state is ModelState.READY


async def test_scaling_says_why_a_worker_failed_and_the_others_serve_on(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=3)
    bench.engine.load_failure = BROKEN

    with pytest.raises(WorkersFailed, match="ValueError: bad weights"):
        await bench.registrar.scale(model, 4, 4, synchronous=True, progress=no_progress)

    assert model.state is ModelState.READY and model.pool.ready == 3


async def test_progress_tells_of_loading(bench: StubDaemon) -> None:
    told: list[tuple[str, int, int]] = []
    request = Registration(url=bench.mar(), overrides=Overrides(workers=2))

    await bench.registrar.register(request, lambda *step: told.append(step))

    loading = [step for step in told if step[0] == "loading"]
    assert loading[0] == ("loading", 0, 2) and loading[-1] == ("loading", 2, 2)


async def test_a_daemon_that_stops_accepts_no_registration_and_no_request(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())

    bench.registrar.refuse()

    with pytest.raises(Stopping):
        model.submit(bench.client.job("late"))
    with pytest.raises(Stopping):
        await bench.register(bench.mar("other"))


async def test_what_a_crash_left_behind_is_removed(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    write_files(bench.models_dir / ".unpacking-x", {"a": b""})
    write_files(bench.models_dir / "0123", {"a": b""})

    bench.registrar.clean()

    assert list(bench.models_dir.iterdir()) == [model.source.unpacked]
