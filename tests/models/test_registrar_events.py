"""Each change of what is registered, and each that failed, is an event of its version."""

from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon, until
from tests.models.replacements import other, replace
from tsctl.daemon.core.errors import DaemonError, WorkersFailed
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.workers.engine import LoadFailure


def told(bench: StubDaemon) -> list[tuple[str, str, str]]:
    """Return each event's kind, its version, and its text; without those of readiness."""
    return [
        (event.kind, f"{event.model}/{event.version}", event.text)
        for event in bench.registrar.events.after()
        if event.kind != "model-ready"
    ]


async def test_what_an_operator_does_with_a_version_is_told(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())

    await bench.registrar.scale(model, 2, 2, synchronous=True, progress=no_progress)
    change_settings(model, {"batch_size": 4})
    await bench.registrar.set_default("m", "1.0")
    await bench.registrar.unregister("m", "1.0")

    assert told(bench) == [
        ("registered", "m/1.0", "registered from m-1.0.mar"),
        ("scaled", "m/1.0", "scaled to 2 workers"),
        ("settings-changed", "m/1.0", "set batch_size 4"),
        ("default-changed", "m/1.0", "the default version from now on"),
        ("unregistered", "m/1.0", "unregistered"),
    ]


async def test_a_registration_that_fails_at_its_archive_is_told(bench: StubDaemon) -> None:
    with pytest.raises(DaemonError):
        await bench.register("missing.mar")

    ((kind, version, text),) = told(bench)
    assert (kind, version) == ("registration-failed", "/")
    assert text.startswith("cannot register missing.mar: Model not found at: missing.mar")


async def test_a_registration_whose_workers_fail_is_told_beside_the_failure(bench: StubDaemon) -> None:
    bench.engine.load_failure = LoadFailure("ValueError: no", "Traceback")

    with pytest.raises(WorkersFailed):
        await bench.register(bench.mar())

    assert told(bench)[1:] == [
        ("model-failed", "m/1.0", "failed, and no worker is started again: ValueError: no"),
        (
            "registration-failed",
            "m/1.0",
            "cannot register m-1.0.mar: Failed to start workers for model m version: 1.0: ValueError: no",
        ),
    ]


async def test_a_replacement_is_told_from_its_beginning_to_its_end(bench: StubDaemon) -> None:
    await bench.register(bench.mar())

    await replace(bench, other(bench))

    assert told(bench)[1:] == [
        ("replacing", "m/1.0", "other.mar is loading, to replace this version"),
        ("replaced", "m/1.0", "replaced by other.mar"),
    ]


async def test_a_version_that_has_replaced_another_does_not_become_ready_again(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    new = await replace(bench, other(bench))
    before = bench.registrar.events.last

    bench.engine.workers[-1].answered = True  # it is replaced at once
    bench.engine.workers[-1].die()
    await until(lambda: new.pool.ready == 1)

    assert [event.kind for event in bench.registrar.events.after(before)] == ["worker-exited"]


async def test_a_replacement_that_fails_is_told_once(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    bench.engine.load_failure = LoadFailure("no")

    with pytest.raises(WorkersFailed):
        await replace(bench, other(bench))

    assert [kind for kind, _, _ in told(bench)] == ["registered", "replacing", "replacement-failed"]
    assert told(bench)[-1][2].startswith("not replaced by other.mar: Failed to start workers")


async def test_a_failed_version_that_is_tried_again_is_told(bench: StubDaemon) -> None:
    bench.engine.load_failure = LoadFailure("no")
    model = await bench.register(bench.mar(), synchronous=False)
    await until(lambda: model.pool.hopeless and not model.pool.workers)

    bench.engine.load_failure = None
    await bench.registrar.retry(model, synchronous=True, progress=no_progress)

    assert [kind for kind, _, _ in told(bench)] == ["registered", "model-failed", "retried"]


async def test_a_restart_tells_what_it_brings_back_and_what_not(tmp_path: Path, bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    await bench.register(bench.mar("gone"))
    (bench.store / "gone-1.0.mar").unlink()
    for directory in bench.models_dir.iterdir():
        if directory.name in str(bench.registry.find("gone").source.unpacked):
            directory.rename(tmp_path / "elsewhere")

    again = await bench.restart()

    assert told(again)[0] == ("registered", "m/1.0", "restored from m-1.0.mar")
    (kind, version, text), *more = told(again)[1:]
    assert (kind, version, more) == ("registration-failed", "gone/1.0", [])
    assert text.startswith("The registration of an earlier run cannot be restored: ")


async def test_a_change_that_could_not_be_saved_is_told(bench: StubDaemon) -> None:
    model = await bench.register(bench.mar())
    bench.snapshot.unlink()
    bench.snapshot.mkdir()

    with pytest.raises(DaemonError):
        await bench.registrar.scale(model, 2, 2, synchronous=False, progress=no_progress)

    kind, _, text = told(bench)[-1]
    assert kind == "not-remembered"
    assert text.startswith(f"a change was applied, and will be lost: cannot write {bench.snapshot}: ")
