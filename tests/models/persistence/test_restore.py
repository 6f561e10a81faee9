"""The models of the last run are restored unchanged, and no loss is silent."""

import json
import shutil
from pathlib import Path

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import NEVER, StubDaemon, until
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.registrar import Registration, no_progress
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.settings import Overrides
from tsctl.daemon.workers.engine import LoadFailure


async def test_what_was_registered_is_loading_before_anything_is_waited_for(tmp_path: Path, bench: StubDaemon) -> None:
    overrides = Overrides(batch_size=4, max_delay=0.5, policy="greedy", response_timeout=7.0)
    await bench.registrar.register(Registration(url=bench.mar(), model_name="n", overrides=overrides))
    await bench.registrar.scale(bench.registry.find("n"), 2, 3, synchronous=True, progress=no_progress)
    again = StubDaemon(tmp_path)
    again.engine.load_time = NEVER

    Startup(again.config, again.registry, again.registrar).restore()

    model = again.registry.find("n", "1.0")
    settings = model.settings
    assert model.state is ModelState.LOADING and model.pool.wanted == 2 and model.at_startup
    assert (model.presence.least, model.presence.most) == (2, 3)
    assert (settings.batch_size, settings.max_delay, settings.policy) == (4, 0.5, "greedy")
    assert settings.response_timeout == 7.0 and model.source.listed is False


async def test_the_archive_is_not_needed_again_and_the_log_says_that_it_is_gone(
    bench: StubDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.register(bench.mar())
    (bench.store / "m-1.0.mar").unlink()

    again = await bench.restart()

    await until(lambda: again.registry.find("m").state is ModelState.READY)
    assert "m-1.0.mar is gone; m/1.0 is served from its unpacked files" in caplog.text
    assert again.unpacked == 1


async def test_a_version_stays_what_was_registered_though_its_archive_changed(
    bench: StubDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    url = bench.mar()
    model = await bench.register(url)
    write_mar(bench.store / url, model_files(version="2.0"))

    again = await bench.restart()

    assert again.names == ["m/1.0"] and again.registry.find("m").source.directory == model.source.directory
    assert "m-1.0.mar has changed since m/1.0 was registered from it" in caplog.text


async def test_what_the_archives_yaml_says_is_read_again(bench: StubDaemon) -> None:
    directory = write_files(bench.store / "m", model_files(configFile="c.yaml") | {"c.yaml": b"batchSize: 8"})
    await bench.register("m")
    (directory / "c.yaml").write_text("batchSize: 16")

    again = await bench.restart()

    assert again.registry.find("m").settings.batch_size == 16


async def test_a_missing_directory_is_unpacked_again_from_the_same_archive(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    shutil.rmtree(bench.models_dir)

    again = await bench.restart()

    await until(lambda: again.registry.find("m").state is ModelState.READY)
    assert again.unpacked == 1 and [*again.remembered] == ["m/1.0"]


async def lost(bench: StubDaemon) -> StubDaemon:
    """Restart without the kept directories, and with whatever became of the archive."""
    shutil.rmtree(bench.models_dir)
    return await bench.restart()


@pytest.mark.parametrize("changed", [True, False], ids=["has changed", "is gone"])
async def test_a_version_whose_files_are_lost_stays_listed_as_failed(changed: bool, bench: StubDaemon) -> None:
    url = bench.mar()
    await bench.register(url)
    if changed:
        write_mar(bench.store / url, model_files() | {"more": b"."})
    else:
        (bench.store / url).unlink()

    again = await lost(bench)

    model = again.registry.find("m", "1.0")
    assert model.state is ModelState.FAILED and not model.healthy and model.pool.failure is not None
    reason = "m-1.0.mar has changed since it was registered" if changed else "Model not found at: m-1.0.mar"
    assert model.pool.failure.error.startswith(f"The registration of an earlier run cannot be restored: {reason}")
    assert again.remembered == bench.remembered and again.engine.workers == []


async def test_a_lost_version_cannot_be_scaled_and_can_be_registered_again(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    (bench.store / "m-1.0.mar").unlink()
    again = await lost(bench)

    with pytest.raises(BadRequest, match="register it again"):
        await again.registrar.scale(again.registry.find("m"), 2, 2, synchronous=True, progress=no_progress)
    model = await again.register(again.mar())

    assert again.registry.find("m") is model and model.state is ModelState.READY
    assert again.unpacked == 1


async def test_a_lost_version_can_be_unregistered(bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    (bench.store / "m-1.0.mar").unlink()
    again = await lost(bench)

    await again.registrar.unregister("m", None)

    assert (again.names, again.remembered, again.unpacked) == ([], {}, 0)


async def test_a_directory_that_is_gone_or_holds_another_version_is_a_lost_version(bench: StubDaemon) -> None:
    for name in ("gone", "changed"):
        write_files(bench.store / name, model_files(name))
        await bench.register(name)
    shutil.rmtree(bench.store / "gone")
    write_files(bench.store / "changed", model_files("changed", "2.0"))

    again = await bench.restart()

    errors = {model.name: str(model.pool.failure) for model in again.registry}
    assert again.names == ["changed/1.0", "gone/1.0"]
    assert "changed now contains changed/2.0" in errors["changed"] and "Model not found at: gone" in errors["gone"]


async def test_a_snapshot_that_asks_for_the_impossible_is_a_failed_version(bench: StubDaemon) -> None:
    await bench.registrar.register(Registration(url=bench.mar(), overrides=Overrides(batch_size=4)))
    document = json.loads(bench.snapshot.read_text())
    document["models"][0]["request"]["wishes"]["batch_size"] = 0
    bench.snapshot.write_text(json.dumps(document))

    again = await bench.restart()

    assert "batch_size is 0" in str(again.registry.find("m").pool.failure)


async def test_a_restored_version_that_cannot_load_stays_listed_as_failed(tmp_path: Path, bench: StubDaemon) -> None:
    await bench.register(bench.mar())
    again = StubDaemon(tmp_path)
    again.engine.load_failure = LoadFailure("ValueError: bad weights")
    await again.start()

    await until(lambda: again.registry.find("m").state is ModelState.FAILED)

    assert [*again.remembered] == ["m/1.0"]


async def test_versions_come_back_in_their_order_with_their_default(bench: StubDaemon) -> None:
    for version in ("3", "1", "2"):
        await bench.register(bench.mar(version=version))
    await bench.registrar.set_default("m", "2")

    again = await bench.restart()

    assert again.names == ["m/3", "m/1", "m/2"] and again.registry.find("m").version == "2"
    assert again.remembered == bench.remembered


async def test_the_default_stays_though_its_directory_must_be_unpacked_again(bench: StubDaemon) -> None:
    first = await bench.register(bench.mar(version="1"))
    await bench.register(bench.mar(version="2"))
    assert first.source.unpacked is not None
    shutil.rmtree(first.source.unpacked)

    again = await bench.restart()

    assert again.registry.find("m").version == "1"


async def test_no_restore_ignores_the_snapshot_until_something_changes(bench: StubDaemon) -> None:
    await bench.register(bench.mar("a"))
    before = bench.snapshot.read_bytes()

    ignoring = await bench.restart(restore="false", models="")
    assert ignoring.names == [] and ignoring.snapshot.read_bytes() == before and ignoring.unpacked == 1

    await ignoring.register(ignoring.mar("b"))
    assert [*ignoring.remembered] == ["b/1.0"] and ignoring.unpacked == 1


@pytest.mark.parametrize("url", ["{store}/mine.py:french", "mine.py:french"], ids=["by its path", "by its name"])
async def test_a_file_that_was_served_in_place_is_served_there_again(url: str, bench: StubDaemon) -> None:
    write_files(bench.store, {"mine.py": b"def french(texts): ...\n"})
    await bench.register(url.format(store=bench.store), local_paths=True)

    again = await bench.restart()

    model = again.registry.find("french")
    await until(lambda: model.state is ModelState.READY)
    assert (model.source.directory, model.source.manifest.handler) == (bench.store, "mine.py:french")
    assert again.unpacked == 0


async def test_a_file_that_is_gone_stays_listed_as_failed(bench: StubDaemon) -> None:
    write_files(bench.store, {"mine.py": b""})
    await bench.register("mine.py")
    (bench.store / "mine.py").unlink()

    again = await bench.restart()

    assert again.registry.find("mine").state is ModelState.FAILED
