"""The models of a list are started, and override the last run's."""

import json
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_mar
from tests.kit.client import Client
from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.errors import NoReadyWorker
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.persistence.startup import Listing, Startup, StartupPlan, parse_listings, plan
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.workers.cores import usable_cores


@pytest.mark.parametrize(
    ("models", "listings"),
    [
        pytest.param(["m.mar"], [Listing("m.mar")], id="an archive"),
        pytest.param(["n=m.mar"], [Listing("m.mar", "n")], id="an archive with the model's name"),
        pytest.param(["ALL"], [Listing("a.mar"), Listing("b")], id="ALL is the store"),
        pytest.param(["b", "all"], [Listing("b"), Listing("a.mar")], id="each archive once"),
        pytest.param(["n = m.mar", "k=m.mar"], [Listing("m.mar", "n"), Listing("m.mar", "k")], id="under two names"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_list_of_models(models: list[str], listings: list[Listing]) -> None:
    assert parse_listings(models, ["a.mar", "b"]) == listings


def make_entry(url: str, version: str = "1.0", *, listed: bool = False, name: str | None = None) -> SnapshotEntry:
    return SnapshotEntry(
        name=name or "m", version=version, request=Registration(url=url, model_name=name), listed=listed
    )


BY_HAND, BY_LIST = make_entry("hand.mar", "1"), make_entry("list.mar", "2", listed=True)


def decision(
    restore: Sequence[SnapshotEntry],
    load: Sequence[Listing] = (),
    renew: Sequence[SnapshotEntry] = (),
    forget: Sequence[SnapshotEntry] = (),
) -> StartupPlan:
    return StartupPlan([*restore], [*load], [*renew], [*forget])


@pytest.mark.parametrize(
    ("listings", "stale", "expected"),
    [
        pytest.param(None, [], decision([BY_HAND, BY_LIST]), id="without a list everything comes back"),
        pytest.param([Listing("list.mar")], [], decision([BY_HAND, BY_LIST]), id="what the list names comes back"),
        pytest.param(
            [Listing("store/list.mar")], [], decision([BY_HAND, BY_LIST]), id="places are compared, not spellings"
        ),
        pytest.param([], [], decision([BY_HAND], forget=[BY_LIST]), id="what it no longer names is forgotten"),
        pytest.param(
            [Listing("list.mar")],
            [BY_LIST],
            decision([BY_HAND], [Listing("list.mar")], renew=[BY_LIST]),
            id="an archive written since is loaded anew",
        ),
        pytest.param(
            [Listing("list.mar", "n")],
            [],
            decision([BY_HAND], [Listing("list.mar", "n")], forget=[BY_LIST]),
            id="under another name it is another model",
        ),
        pytest.param(
            [Listing("hand.mar")],
            [],
            decision([BY_HAND], forget=[BY_LIST]),
            id="what was registered by hand is not loaded twice",
        ),
        pytest.param(
            [Listing("hand.mar", "m")],
            [],
            decision([BY_HAND], forget=[BY_LIST]),
            id="under the name that it has already it is the same model",
        ),
        pytest.param(
            [Listing("new.mar")],
            [BY_HAND],
            decision([BY_HAND], [Listing("new.mar")], forget=[BY_LIST]),
            id="what was registered by hand comes back though its archive changed",
        ),
    ],
)
def test_plan(listings: list[Listing] | None, stale: list[SnapshotEntry], expected: StartupPlan) -> None:
    decided = plan(
        [BY_HAND, BY_LIST],
        listings,
        place=lambda url: url.removeprefix("store/"),
        fresh=lambda entry: entry not in stale,
    )

    assert decided == expected


async def test_what_a_list_loads_without_restoring_is_no_change(bench: StubDaemon) -> None:
    await bench.register(bench.mar("a"))

    ignoring = await bench.restart(restore="false", models=bench.mar("b"))

    assert ignoring.names == ["b/1.0"] and [*ignoring.remembered] == ["a/1.0"]


async def test_a_listed_archive_is_loaded_with_a_worker_for_each_core(bench: StubDaemon) -> None:
    again = await bench.restart(models=f"n={bench.mar()}")

    model = again.registry.find("n")
    assert model.pool.wanted == usable_cores() and model.at_startup
    assert again.remembered["n/1.0"].listed
    assert again.remembered["n/1.0"].request.overrides == Overrides()  # the number is not frozen

    fewer = await bench.restart(models="n=m-1.0.mar", default_workers="3")
    assert fewer.registry.find("n").pool.wanted == 3


async def test_a_listed_archive_outside_the_store_is_loaded(tmp_path: Path, bench: StubDaemon) -> None:
    elsewhere = write_mar(tmp_path / "m.mar", model_files())

    again = await bench.restart(models=str(elsewhere))

    assert again.names == ["m/1.0"]


async def test_an_archive_of_the_list_that_is_not_there_is_named_and_the_others_are_loaded(
    bench: StubDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    again = await bench.restart(models=f"missing.mar,{bench.mar()}")

    assert again.names == ["m/1.0"]
    assert "cannot load missing.mar: Model not found at: missing.mar" in caplog.text


async def test_a_list_brings_the_archive_as_it_is_now_with_what_was_set_since(bench: StubDaemon) -> None:
    url = bench.mar()
    first = await bench.restart(models=url)
    await first.registrar.scale(first.registry.find("m"), 3, 3, synchronous=False, progress=no_progress)
    write_mar(bench.store / url, model_files() | {"more": b"."})

    again = await bench.restart(models=url)

    model = again.registry.find("m")
    assert (model.source.directory / "more").is_file() and model.pool.wanted == 3
    assert again.unpacked == 2  # the old one, too: a rollback brings it back


async def test_what_a_list_no_longer_names_is_not_restored_and_the_log_says_so(
    bench: StubDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = bench.mar("a"), bench.mar("b")
    await bench.restart(models=f"{a},{b}")

    with caplog.at_level(logging.INFO, "tsctl.daemon.models"):
        again = await bench.restart(models=b)

    assert again.names == ["b/1.0"] and [*again.remembered] == ["b/1.0"] and again.unpacked == 1
    assert "a/1.0 is not restored: it was loaded from a list that no longer names it" in caplog.text


async def test_an_archive_of_the_list_that_is_gone_is_served_from_what_was_unpacked(bench: StubDaemon) -> None:
    url = bench.mar()
    await bench.restart(models=url)
    (bench.store / url).unlink()

    again = await bench.restart(models=url)

    await until(lambda: again.registry.find("m").state is ModelState.READY)


async def test_an_archive_of_the_list_that_broke_leaves_its_version_failed_with_what_was_set(bench: StubDaemon) -> None:
    url = bench.mar()
    first = await bench.restart(models=url)
    await first.registrar.scale(first.registry.find("m"), 3, 3, synchronous=False, progress=no_progress)
    (bench.store / url).write_bytes(b"no archive")

    again = await bench.restart(models=url)

    model = again.registry.find("m", "1.0")
    assert model.state is ModelState.FAILED and "neither a zip nor" in str(model.pool.failure)
    assert again.remembered == first.remembered


async def test_an_archive_of_the_list_that_holds_another_version_now_brings_that_one(
    bench: StubDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    url = bench.mar()
    await bench.restart(models=url)
    write_mar(bench.store / url, model_files(version="2.0"))

    with caplog.at_level(logging.INFO, "tsctl.daemon.models"):
        again = await bench.restart(models=url)

    assert again.names == ["m/2.0"] and [*again.remembered] == ["m/2.0"]
    assert "m/1.0 is not restored: m-1.0.mar no longer contains this version" in caplog.text


async def test_a_change_while_the_list_is_loaded_forgets_nothing(tmp_path: Path, bench: StubDaemon) -> None:
    url = bench.mar()
    first = await bench.restart(models=url)
    await first.registrar.scale(first.registry.find("m"), 3, 3, synchronous=False, progress=no_progress)
    write_mar(bench.store / url, model_files() | {"more": b"."})
    again = StubDaemon(tmp_path, models=url)
    startup = Startup(again.config, again.registry, again.registrar)
    startup.restore()

    await again.register(again.mar("other"), workers=0)

    assert again.remembered["m/1.0"] == first.remembered["m/1.0"]
    assert not startup.done
    await startup.load()
    assert startup.done and again.registry.find("m").pool.wanted == 3


async def test_a_list_wins_over_the_same_version_from_another_archive(tmp_path: Path, bench: StubDaemon) -> None:
    elsewhere = write_mar(tmp_path / "m.mar", model_files() | {"elsewhere": b"."})
    request = Registration(url=str(elsewhere), overrides=Overrides(batch_size=4, workers=1), local_paths=True)
    await bench.registrar.register(request)

    again = await bench.restart(models=bench.mar())

    model = again.registry.find("m")
    assert not (model.source.directory / "elsewhere").exists() and model.source.listed
    assert model.settings.batch_size == 4  # what was set stays set


def properties(root: Path, **block: object) -> str:
    file = root / "config.properties"
    file.write_text(f"models={json.dumps(block)}\n")
    return str(file)


async def test_the_models_block_gives_values_and_the_default_version(tmp_path: Path, bench: StubDaemon) -> None:
    one, two = bench.mar(version="1"), bench.mar(version="2")
    values = {"defaultVersion": True, "minWorkers": 2, "maxWorkers": 2, "batchSize": 8, "maxBatchDelay": 50}
    file = properties(tmp_path, m={"2": values})

    again = await bench.restart(models=f"{one},{two}", ts_config=file)

    model = again.registry.find("m")
    assert (model.version, model.pool.wanted) == ("2", 2)
    assert (model.settings.batch_size, model.settings.max_delay) == (8, 0.05)
    assert model.settings.origins["batch_size"] == "the models block of config.properties"
    assert again.remembered["m/2"].request.overrides.batch_size is None  # not frozen


async def test_a_snapshot_of_torchserve_is_served_as_it_was_and_then_remembered(
    tmp_path: Path, bench: StubDaemon
) -> None:
    one, two = "one.mar", bench.mar(version="2")
    yaml = {"c.yaml": b"batchSize: 16\nminWorkers: 1\n"}
    write_mar(bench.store / one, model_files("m", "1", configFile="c.yaml") | yaml)
    values = {"minWorkers": 2, "maxWorkers": 3, "batchSize": 8, "maxBatchDelay": 50, "responseTimeout": 9}
    versions = {"1": {"marName": one} | values, "2": {"marName": two, "minWorkers": 0, "defaultVersion": True}}
    file = tmp_path / "config.properties"
    file.write_text(f"model_snapshot={json.dumps({'models': {'m': versions}})}\n")

    again = await bench.restart(ts_config=str(file))

    model, default = again.registry.find("m", "1"), again.registry.find("m")
    settings = model.settings
    assert (model.pool.wanted, settings.batch_size, settings.max_delay, settings.response_timeout) == (
        2,
        8,
        0.05,
        9,
    )
    assert (default.version, default.pool.wanted) == ("2", 0)
    await again.registrar.scale(model, 1, 1, synchronous=False, progress=no_progress)
    assert (await again.restart(ts_config=str(file))).registry.find("m", "1").pool.wanted == 1


async def test_a_snapshots_settings_are_those_of_its_archive_though_that_contains_another_version_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bench: StubDaemon
) -> None:
    renewed, other = bench.mar(version="3"), bench.mar(version="2")
    snapshot = {
        "1": {"marName": renewed, "minWorkers": 2, "batchSize": 8, "maxBatchDelay": 100, "defaultVersion": True},
        "2": {"marName": other, "minWorkers": 1, "batchSize": 4},
    }
    file = tmp_path / "config.properties"
    file.write_text(f"model_snapshot={json.dumps({'models': {'m': snapshot}})}\n")

    again = await bench.restart(ts_config=str(file))

    model = again.registry.find("m")
    assert (model.version, model.pool.wanted) == ("3", 2)
    assert (model.settings.batch_size, model.settings.max_delay) == (8, 0.1)
    assert again.registry.find("m", "2").settings.batch_size == 4
    assert f"{renewed} contains version 3, and `model_snapshot` names 1 of it: its settings are used" in caplog.text


async def test_a_snapshot_of_torchserve_with_a_wrong_value_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bench: StubDaemon
) -> None:
    versions = {"1.0": {"marName": bench.mar(), "batchSize": "many"}}
    file = tmp_path / "config.properties"
    file.write_text(f"model_snapshot={json.dumps({'models': {'m': versions}})}\n")

    again = await bench.restart(ts_config=str(file))

    assert again.names == []
    assert "`batchSize` is `many`; expected a whole number of at least 1" in caplog.text


async def test_a_default_that_somebody_chose_wins_over_the_models_block(tmp_path: Path, bench: StubDaemon) -> None:
    models = ",".join(bench.mar(version=version) for version in ("1", "2"))
    file = properties(tmp_path, m={"2": {"defaultVersion": True}})
    first = await bench.restart(models=models, ts_config=file)
    assert first.registry.find("m").version == "2"

    await first.registrar.set_default("m", "1")

    assert (await bench.restart(models=models, ts_config=file)).registry.find("m").version == "1"


async def test_an_archive_that_was_only_touched_is_loaded_from_the_list_once(bench: StubDaemon) -> None:
    url = bench.mar()
    await bench.restart(models=url)
    os.utime(bench.store / url, ns=(1, 1))

    again = await bench.restart(models=url)

    assert again.names == ["m/1.0"] and again.unpacked == 1


async def test_what_is_listed_or_was_registered_is_expected_until_it_is_registered_or_fails(
    tmp_path: Path, bench: StubDaemon
) -> None:
    await bench.register(bench.mar("kept"))
    (bench.store / "broken.mar").write_bytes(b"no archive")
    again = StubDaemon(tmp_path, models=f"{bench.mar('listed')},known=broken.mar")
    for kept in again.models_dir.iterdir():
        shutil.rmtree(kept)
    startup = Startup(again.config, again.registry, again.registrar)

    startup.restore()

    assert [again.registry.expects(name) for name in ("kept", "listed", "known", "other")] == [True, True, True, False]
    await startup.load()
    assert not any(again.registry.expects(name) for name in ("kept", "listed", "known"))
    assert {model.name for model in again.registry} == {"kept", "listed"}
    with pytest.raises(NoReadyWorker, match='"known" could not be loaded at the start'):
        again.registry.find("known")


async def test_a_version_of_the_start_lets_requests_wait_for_its_first_worker(
    tmp_path: Path, bench: StubDaemon
) -> None:
    again = StubDaemon(tmp_path, models=bench.mar())
    again.engine.load_time = 3600.0
    await again.start()
    model = again.registry.find("m")
    client = Client()

    assert model.state is ModelState.LOADING
    model.submit(client.job("a"))
    for worker in again.engine.workers:
        worker.load_now()
    await until(lambda: bool(client.statuses))

    assert client.statuses == {"a": 200}
