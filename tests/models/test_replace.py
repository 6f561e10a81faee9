"""A replacement serves when it is ready, and not before; nobody is refused, and a failed one leaves nothing."""

from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import NEVER, StubDaemon, until
from tests.models.replacements import begin, other, ready, replace
from tsctl.daemon.core.errors import InvalidModel, WorkersFailed
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.state import WorkerState

BROKEN = LoadFailure("ValueError: bad weights", "Traceback (most recent call last): …")


async def test_the_old_one_serves_until_the_new_one_is_ready(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    loading = await begin(bench, other(bench))
    old.submit(bench.client.job("meanwhile"))
    await until(lambda: "meanwhile" in bench.client.answered)
    assert bench.registry.find("m") is old and old.being_replaced and old.state is ModelState.READY

    ready(bench)
    new = await loading

    assert bench.registry.find("m") is new and new.state is ModelState.READY and new.took_over
    await until(lambda: old.pool.empty and new.replaces is None)
    assert bench.unpacked == 2  # the old one, too: a rollback brings it back
    assert (new.source.directory / "weights").read_bytes() == b"other"
    assert bench.remembered["m/1.0"].unpacked == new.source.directory.name
    assert bench.client.statuses == {"meanwhile": 200}


async def test_what_the_old_one_has_accepted_it_answers_however_long_that_takes(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path, grace="0")
    bench.engine.batch_time = lambda size: NEVER
    old = await bench.register(bench.mar())
    old.submit(bench.client.job("running"))
    await until(lambda: old.dispatcher.running == 1)
    old.submit(bench.client.job("waiting"))

    new = await replace(bench, other(bench))
    assert new.replaces is old and old.running + old.waiting == 2 and bench.unpacked == 2
    bench.engine.batch_time = lambda size: 0.0
    bench.engine.workers[0]._finish(0.0)
    await until(lambda: new.replaces is None)

    assert bench.client.statuses == {"running": 200, "waiting": 200}
    assert old.pool.empty and bench.registry.find("m") is new
    assert bench.unpacked == 2  # the old one, too: a rollback brings it back


async def test_one_that_cannot_be_loaded_leaves_the_old_one_and_nothing_else(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    before = bench.snapshot.read_bytes()
    bench.engine.load_failure = BROKEN

    with pytest.raises(WorkersFailed, match=r"(?s)ValueError: bad weights.*Traceback"):
        await replace(bench, other(bench), workers=2)

    assert bench.registry.find("m") is old and old.state is ModelState.READY and not old.being_replaced
    assert bench.unpacked == 1 and bench.snapshot.read_bytes() == before
    assert old.replacement is not None and "bad weights" in old.replacement.error
    assert [worker.state for worker in bench.engine.workers] == [
        WorkerState.READY,
        WorkerState.EXITED,
        WorkerState.EXITED,
    ]
    bench.engine.load_failure = None
    assert (await replace(bench, other(bench))).took_over


async def test_an_archive_that_is_refused_leaves_the_old_one(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    write_mar(bench.store / "bad.mar", model_files(handler="missing.py"))

    with pytest.raises(InvalidModel):
        await replace(bench, "bad.mar")

    assert bench.registry.find("m") is old and not old.being_replaced and bench.unpacked == 1


async def test_without_waiting_the_failure_is_kept_where_it_was_asked_for(bench: StubDaemon) -> None:
    old = await bench.register(bench.mar())
    bench.engine.load_failure = BROKEN

    new = await replace(bench, other(bench), synchronous=False)

    assert bench.registry.find("m") is old and old.being_replaced
    await until(lambda: not old.being_replaced and new.pool.empty and bench.unpacked == 1)
    assert old.replacement is not None and "bad weights" in old.replacement.error


async def test_without_waiting_it_takes_over_when_it_is_ready_and_is_remembered(bench: StubDaemon) -> None:
    await bench.register(bench.mar())

    new = await replace(bench, other(bench), synchronous=False)

    await until(lambda: bench.registry.find("m") is new)
    await until(lambda: bench.remembered["m/1.0"].unpacked == new.source.directory.name)


async def test_without_waiting_it_is_a_change_that_an_upgrade_waits_for(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.engine.load_time = NEVER

    await replace(bench, other(bench), synchronous=False)

    gate = bench.registrar.gate
    assert repr(gate) == "<Gate open, 1 inside>"
    await bench.registrar.end()
    await gate.emptied()


async def test_without_workers_there_is_nothing_to_wait_for_and_it_is_remembered_at_once(bench: StubDaemon) -> None:
    await bench.register(bench.mar(), workers=0)

    new = await replace(bench, other(bench), synchronous=False, workers=0)

    assert bench.registry.find("m") is new and new.took_over
    assert bench.remembered["m/1.0"].unpacked == new.source.directory.name


async def test_what_is_not_registered_is_registered(bench: StubDaemon) -> None:
    model = await replace(bench, bench.mar(), workers=1)

    assert bench.names == ["m/1.0"] and not model.took_over and [*bench.remembered] == ["m/1.0"]


async def test_one_that_has_failed_can_be_replaced_too_and_stays_listed_until_then(bench: StubDaemon) -> None:
    bench.engine.load_failure = BROKEN
    failed = await bench.register(bench.mar(), synchronous=False)
    await until(lambda: failed.state is ModelState.FAILED)

    with pytest.raises(WorkersFailed):
        await replace(bench, other(bench), workers=1)
    assert bench.registry.find("m") is failed and [*bench.remembered] == ["m/1.0"]
    bench.engine.load_failure = None
    new = await replace(bench, other(bench), workers=1)

    assert bench.registry.find("m") is new and new.state is ModelState.READY


async def test_the_same_path_with_other_content_is_a_replacement(bench: StubDaemon) -> None:
    url = bench.mar()
    await bench.register(url)
    write_mar(bench.store / url, model_files() | {"weights": b"new"})

    new = await replace(bench, url)

    assert (new.source.directory / "weights").read_bytes() == b"new"


async def test_a_directory_takes_the_place_of_an_archive(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    directory = write_files(bench.store / "m", model_files())

    assert (await replace(bench, "m")).source.directory == directory
    assert bench.unpacked == 1  # a rollback brings it back
    await bench.registrar.unregister("m", None)
    assert bench.unpacked == 0 and (directory / "handler.py").is_file()


async def test_a_directory_that_takes_its_own_place_keeps_its_files(bench: StubDaemon) -> None:
    directory = write_files(bench.store / "m", model_files())
    await bench.register("m")

    assert (await replace(bench, "m")).source.directory == directory
    await until(lambda: bench.registry.find("m").replaces is None)
    assert (directory / "handler.py").is_file()


async def test_the_same_content_again_keeps_its_directory(bench: StubDaemon) -> None:
    await bench.register(bench.mar())

    new = await replace(bench, bench.mar())

    await until(lambda: new.replaces is None)
    assert (new.source.directory / "handler.py").is_file() and bench.unpacked == 1


async def test_the_default_and_the_order_of_versions_stay(bench: StubDaemon) -> None:
    for version in ("1.0", "2.0"):
        await bench.register(bench.mar(version=version))
    await bench.registrar.set_default("m", "2.0")

    for version in ("1.0", "2.0"):
        await replace(bench, other(bench, version=version, content=version.encode()))

    assert bench.names == ["m/1.0", "m/2.0"] and bench.registry.find("m").version == "2.0"
    assert [entry.chosen for entry in bench.remembered.values()] == [False, True]
