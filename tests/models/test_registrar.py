"""Registering leaves a served model, or nothing: also where files and workers go wrong; see `registrations`."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files
from tests.kit.daemon import NEVER, StubDaemon, until
from tests.models.replacements import begin, other, ready, replace
from tsctl.daemon import paths
from tsctl.daemon.core.errors import BeingReplaced, Conflict, OutOfResources, Stopping, WorkersFailed
from tsctl.daemon.core.machine.processes import AvailableMemory
from tsctl.daemon.models.archives import opening, unpack
from tsctl.daemon.models.archives.download import PLACE
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.workers.engine import BatchEvents, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.stub import StubEngine, StubWorker

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


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


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (2, ""),
        (12, ""),
        (
            13,
            "13 workers are requested, and memory has room for 12: each has 300 MiB of its own, and the cgroup",
        ),
        (1000, "1000 workers are requested, and memory has room for 12"),
    ],
)
async def test_more_workers_than_memory_has_room_for_are_refused_before_one_starts(
    wanted: int, told: str, bench: StubDaemon
) -> None:
    bench.registrar.memory = lambda pids, ending: (
        300 * 2**20,
        AvailableMemory(3 * 2**30, "the cgroup /box", 4 * 2**30),
    )
    model = await bench.register(bench.mar(), workers=2)

    with pytest.raises(OutOfResources, match=told) if told else contextlib.nullcontext():
        await bench.registrar.scale(model, wanted, wanted, synchronous=True, progress=no_progress)

    assert len(bench.engine.workers) == (2 if told else wanted)


async def test_of_workers_whose_memory_is_unknown_a_few_are_started_and_measured_first(bench: StubDaemon) -> None:
    started: list[int] = []

    def memory(pids: Sequence[int], ending: Sequence[int]) -> tuple[int, AvailableMemory]:
        started.append(len(bench.engine.workers))
        return 100, AvailableMemory(10_000, "this machine", 10_000)

    bench.registrar.memory = memory
    model = await bench.register(bench.mar(), workers=0)
    model.pool.cores = 4
    with pytest.raises(OutOfResources, match="1000 workers are requested, and memory has room for 116"):
        await bench.registrar.scale(model, 1000, 1000, synchronous=True, progress=no_progress)

    assert (started, model.pool.ready, model.presence.least) == ([16], 16, 16)
    await bench.registrar.scale(model, 0, 0, synchronous=False, progress=no_progress)
    await bench.registrar.scale(model, 100, 100, synchronous=True, progress=no_progress)
    assert (started[1:], model.pool.ready) == ([32], 100)


@pytest.mark.parametrize(
    ("wanted", "ready", "told"),
    [(100, 100, "scaled to 100 workers"), (1000, 16, "not scaled to 1000 workers: 1000 workers are")],
)
async def test_nobody_has_to_wait_for_the_workers_that_are_measured_first(
    wanted: int, ready: int, told: str, bench: StubDaemon
) -> None:
    bench.registrar.memory = lambda pids, ending: (100, AvailableMemory(10_000, "this machine", 10_000))
    model = await bench.register(bench.mar(), workers=0)
    model.pool.cores = 4
    with bench.registrar.gate.change():
        await bench.registrar.scale(model, wanted, wanted, synchronous=False, progress=no_progress)

    await bench.registrar.gate.emptied()
    await until(lambda: model.pool.ready == ready)
    assert (len(bench.engine.workers), model.presence.least) == (ready, ready)
    [said] = [each.text for each in bench.registrar.events.after(0) if each.kind.startswith("scal")][1:]
    assert said.startswith(told)


async def test_workers_that_are_loading_go_on_where_others_are_wanted(bench: StubDaemon) -> None:
    bench.registrar.memory = lambda pids, ending: (100, AvailableMemory(10_000, "this machine", 10_000))
    model = await bench.register(bench.mar(), workers=30, synchronous=False)
    model.pool.cores = 4
    loading = list(model.pool.workers)
    await bench.registrar.scale(model, 32, 32, synchronous=True, progress=no_progress)

    assert model.pool.workers[:30] == loading
    assert model.pool.ready == 32


async def test_the_memory_of_workers_that_are_leaving_is_for_those_that_come(bench: StubDaemon) -> None:
    asked: list[tuple[Sequence[int], Sequence[int]]] = []

    def memory(pids: Sequence[int], ending: Sequence[int]) -> tuple[int, AvailableMemory]:
        asked.append((pids, ending))
        return 1, AvailableMemory(10, "this machine", 10)

    bench.engine.batch_time = lambda size: NEVER
    bench.registrar.memory = memory
    model = await bench.register(bench.mar())
    model.submit(bench.client.job("running"))
    await until(lambda: model.dispatcher.running == 1)

    for workers in (0, 1, 2):
        await bench.registrar.scale(model, workers, workers, synchronous=workers == 1, progress=no_progress)

    assert asked == [([2], [1])]


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


@pytest.mark.parametrize("at_once", [False, True], ids=["in order", "at once"])
async def test_a_daemon_that_stops_accepts_no_registration_and_no_request(at_once: bool, bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())

    if at_once:
        await bench.registrar.stop_now()
    else:
        bench.registrar.refuse()

    with pytest.raises(Stopping):
        model.submit(bench.client.job("late"))
    with pytest.raises(Stopping):
        await bench.register(bench.mar("other"))


async def test_what_a_crash_left_behind_is_removed(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    write_files(bench.models_dir / ".unpacking-x", {"a": b""})
    write_files(bench.models_dir / "0123", {"a": b""})
    downloads = paths.downloads_dir(bench.config.state_dir)
    write_files(downloads / f"{PLACE}x", {"a": b""})

    bench.registrar.clean()

    assert list(bench.models_dir.iterdir()) == [model.source.unpacked]
    assert list(downloads.iterdir()) == []


@pytest.mark.parametrize(("workers", "loaded"), [(2, 2), (0, 1)], ids=["with its number", "of none with one"])
async def test_an_operator_unloads_a_version_and_loads_it(workers: int, loaded: int, bench: StubDaemon) -> None:
    model = await bench.register(bench.mar(), workers=workers)

    await bench.registrar.unload(model)
    assert (model.pool.wanted, bench.remembered["m/1.0"].request.held) == (0, True)
    bench.engine.load_time = NEVER
    await bench.registrar.load(model, synchronous=False, progress=no_progress)
    for worker in bench.engine.workers[-loaded:]:
        worker._load()

    assert (model.pool.ready, bench.remembered["m/1.0"].request.held) == (loaded, False)
    told = [event.text for event in bench.registrar.events.after(0) if event.kind in ("unloaded", "loading")]
    assert told == ["unloaded by an operator", "loaded by an operator"]


async def test_a_version_is_built_anew_with_its_workers_unless_another_has_its_place(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar(), workers=2)

    new = await bench.registrar.renew(old, "the same archive")
    await until(lambda: list(bench.registrar.live) == [new])

    assert bench.registry.find("m") is new and new.pool.ready == 2
    assert new.request.overrides == old.request.overrides
    assert new.source.directory.exists(), "the files stay, which both have used"
    await replace(bench, other(bench))
    with pytest.raises(Conflict, match="already registered"):
        await bench.registrar.renew(new, "the same archive")
    await bench.registrar.unregister("m", None)
    assert bench.unpacked == 0


@pytest.mark.parametrize(
    ("asked", "archive", "scaled", "ready"),
    [
        pytest.param(Overrides(), "", 3, 3, id="nobody has named a number"),
        pytest.param(Overrides(fallback_workers=2), "", 0, 2, id="a fallback"),
        pytest.param(Overrides(fallback_workers=2), "", 3, 3, id="a fallback, then scaled"),
        pytest.param(Overrides(), "minWorkers: 2", 0, 2, id="of the archive"),
        pytest.param(Overrides(workers=1), "minWorkers: 2", 0, 1, id="of the registration"),
    ],
)
async def test_a_version_is_built_anew_with_as_many_workers_whoever_chose_their_number(
    bench: StubDaemon, asked: Overrides, archive: str, scaled: int, ready: int
) -> None:
    write_files(bench.store / "m", model_files(configFile="c.yaml") | {"c.yaml": archive.encode()})
    old = await bench.registrar.register(Registration(url="m", overrides=asked))
    if scaled:
        old.scale(scaled, scaled)

    new = await bench.registrar.renew(old, "the same archive")

    assert new.pool.ready == ready


async def test_a_version_is_neither_loaded_nor_unloaded_while_another_is_about_to_replace_it(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))

    with pytest.raises(BeingReplaced):
        await bench.registrar.load(model, synchronous=True, progress=no_progress)
    with pytest.raises(BeingReplaced):
        await bench.registrar.unload(model)

    ready(bench)
    await loading


async def test_one_that_was_over_the_restart_limit_is_tried_again_with_a_clean_record(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    slot = model.pool.slots[0]
    slot.failures = [bench.engine.clock.now()] * 4  # the fifth is the last
    bench.engine.workers[0].die("killed by SIGSEGV")
    assert model.pool.hopeless

    await bench.registrar.retry(model, synchronous=True, progress=no_progress)
    assert model.pool.ready == 1 and slot.failures == []

    bench.engine.workers[-1].die("killed by SIGSEGV")
    assert model.state is ModelState.LOADING, "one early exit is not over the limit"
