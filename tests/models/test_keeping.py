"""A replacement keeps each setting that was asked for, unless the request asks for another value or begins anew."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files
from tests.kit.daemon import StubDaemon, until
from tests.models.replacements import other, replace
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure


async def chosen(bench: StubDaemon, **overrides: Any) -> ModelVersion:
    return await bench.registrar.register(Registration(url=bench.mar(), overrides=Overrides(**overrides)))


def configured(bench: StubDaemon, config: bytes) -> str:
    """Put another archive of the version into the store, with a model-config.yaml."""
    write_files(bench.store / "m", model_files(configFile="c.yaml") | {"c.yaml": config})
    return "m"


def values(model: ModelVersion) -> tuple[Any, ...]:
    settings = model.settings
    return settings.batch_size, settings.max_delay, settings.queue_jobs, model.presence.least, model.presence.most


async def test_what_was_asked_for_at_the_registration_and_since_is_kept(bench: StubDaemon) -> None:
    old = await chosen(bench, workers=1, batch_size=4)
    change_settings(old, {"max_delay": 0.5, "queue_jobs": 7})
    await bench.registrar.scale(old, 2, 3, synchronous=True, progress=no_progress)

    new = await replace(bench, other(bench))

    assert values(new) == values(old) == (4, 0.5, 7, 2, 3)
    assert new.request.overrides.since == {"max_delay": "set", "queue_jobs": "set", "workers": "scale"}
    assert {name: new.settings.origins[name] for name in ("batch_size", "max_delay", "workers", "policy")} == {
        "batch_size": "register", "max_delay": "set", "workers": "scale", "policy": "default",
    }  # fmt: skip


async def test_it_is_kept_through_a_second_replacement_and_a_restart(bench: StubDaemon) -> None:
    change_settings(await chosen(bench, workers=2, batch_size=4), {"max_delay": 0.5})

    await replace(bench, other(bench))
    await replace(bench, other(bench, content=b"third"))

    again = await bench.restart()
    model = again.registry.find("m")
    assert (model.settings.batch_size, model.settings.max_delay, model.pool.wanted) == (4, 0.5, 2)
    assert model.settings.origins["max_delay"] == "set"


async def test_what_the_request_asks_for_wins_and_counts_as_registered(bench: StubDaemon) -> None:
    old = await chosen(bench, workers=1, batch_size=4)
    change_settings(old, {"batch_size": 8, "max_delay": 0.5})

    new = await replace(bench, other(bench), batch_size=2)

    assert (new.settings.batch_size, new.settings.origins["batch_size"]) == (2, "register")
    assert (new.settings.max_delay, new.settings.origins["max_delay"]) == (0.5, "set")


async def test_a_number_of_workers_in_the_request_brings_its_own_largest_number(bench: StubDaemon) -> None:
    await bench.registrar.scale(await chosen(bench), 2, 5, synchronous=True, progress=no_progress)

    new = await replace(bench, other(bench), workers=1)

    assert (new.presence.least, new.presence.most) == (1, 1)


async def test_an_archive_with_another_value_does_not_win_over_one_that_was_asked_for(bench: StubDaemon) -> None:
    await chosen(bench, workers=1, batch_size=4)

    new = await replace(bench, configured(bench, b"batchSize: 16\nmaxBatchDelay: 20\nminWorkers: 4"))

    assert (new.settings.batch_size, new.settings.origins["batch_size"]) == (4, "register")
    assert (new.settings.max_delay, new.settings.origins["max_delay"]) == (0.02, "model-config.yaml")
    assert new.presence.least == 1


async def test_what_only_the_old_archive_said_is_read_from_the_new_one(bench: StubDaemon) -> None:
    write_files(bench.store / "old", model_files(configFile="c.yaml") | {"c.yaml": b"batchSize: 16\nretry: true"})
    await bench.register("old")

    new = await replace(bench, other(bench))

    assert (new.settings.batch_size, new.settings.retry) == (1, None)
    assert new.settings.origins["batch_size"] == "default"


@pytest.mark.parametrize(
    ("config", "overrides", "workers"),
    [
        pytest.param(b"", {}, 3, id="as many as before where nobody says"),
        pytest.param(b"", {"fallback_workers": 1}, 3, id="also before the client's fallback"),
        pytest.param(b"", {"workers": 2}, 2, id="as many as the request says"),
        pytest.param(b"minWorkers: 4", {}, 4, id="as many as the archive says"),
    ],
)
async def test_without_a_chosen_number_of_workers(
    config: bytes, overrides: dict[str, Any], workers: int, bench: StubDaemon
) -> None:
    write_files(bench.store / "old", model_files(configFile="c.yaml") | {"c.yaml": b"minWorkers: 3"})
    await bench.register("old", workers=None)

    new = await replace(bench, configured(bench, config), **overrides)

    assert (new.pool.ready, new.presence.least) == (workers, workers)
    again = await bench.restart()
    assert again.registry.find("m").pool.wanted == workers


async def test_no_workers_are_a_choice_that_is_kept(bench: StubDaemon) -> None:
    await bench.registrar.scale(await chosen(bench, workers=2), 0, 0, synchronous=True, progress=no_progress)

    new = await replace(bench, other(bench), fallback_workers=1)

    assert (new.state, new.presence.least) == (ModelState.UNLOADED, 0)


async def test_reset_begins_with_the_request_alone(bench: StubDaemon) -> None:
    old = await chosen(bench, workers=3, batch_size=4)
    change_settings(old, {"max_delay": 0.5})
    request = Registration(url=other(bench), overrides=Overrides(fallback_workers=1, queue_jobs=9))

    new = await bench.registrar.register(request, replace=True, reset=True)

    assert values(new) == (1, 0.1, 9, 1, 1)
    assert new.request == request and new.before is not None and new.before.kept == ()


async def test_a_version_that_failed_keeps_them_too(bench: StubDaemon) -> None:
    bench.engine.load_failure = LoadFailure("ValueError: bad weights")
    request = Registration(url=bench.mar(), overrides=Overrides(workers=2, batch_size=4), synchronous=False)
    failed = await bench.registrar.register(request)
    await until(lambda: failed.state is ModelState.FAILED)
    bench.engine.load_failure = None

    new = await replace(bench, other(bench))

    assert (new.settings.batch_size, new.pool.ready) == (4, 2)


async def test_a_replacement_that_fails_changes_nothing(bench: StubDaemon) -> None:
    old = await chosen(bench, workers=1, batch_size=4)
    bench.engine.load_failure = LoadFailure("ValueError: bad weights")

    with pytest.raises(Exception, match="bad weights"):
        await replace(bench, other(bench), batch_size=16)

    assert bench.registry.find("m") is old and old.settings.batch_size == 4
    assert bench.remembered["m/1.0"].request == old.request


async def test_each_version_keeps_its_own(bench: StubDaemon) -> None:
    for version, size in (("1.0", 4), ("2.0", 16)):
        await bench.registrar.register(
            Registration(url=bench.mar(version=version), overrides=Overrides(workers=1, batch_size=size))
        )

    new = await replace(bench, other(bench, version="2.0"))

    assert new.settings.batch_size == 16 and bench.registry.find("m", "1.0").settings.batch_size == 4


async def test_a_version_whose_files_are_gone_keeps_what_was_asked_for(bench: StubDaemon) -> None:
    directory = write_files(bench.store / "gone", model_files())
    await bench.registrar.register(Registration(url="gone", overrides=Overrides(workers=2, batch_size=4)))
    (directory / "MAR-INF/MANIFEST.json").unlink()
    again = await bench.restart()
    assert again.registry.find("m").lost

    new = await replace(again, other(again))

    assert (new.settings.batch_size, new.pool.ready) == (4, 2)


async def test_the_handler_is_the_archives(bench: StubDaemon) -> None:
    await bench.registrar.register(Registration(url=bench.mar(), handler="base_handler"))

    new = await replace(bench, other(bench))

    assert new.source.manifest.handler == "handler.py"


@pytest.mark.parametrize("name", ["batch_size", "max_delay", "policy", "queue_jobs", "retry", "max_memory"])
async def test_any_row_is_kept(name: str, tmp_path: Path) -> None:
    value: Any = {
        "batch_size": 3, "max_delay": 0.0, "policy": "greedy", "queue_jobs": 5, "retry": False, "max_memory": 2**30,
    }[name]  # fmt: skip
    bench = StubDaemon(tmp_path)
    await chosen(bench, workers=1, **{name: value})

    new = await replace(bench, other(bench))

    assert getattr(new.settings, name) == value and new.before is not None and name in new.before.kept
