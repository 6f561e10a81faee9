"""TorchServe's snapshots: files from which torchserve and tsctl start, and which scripts look for by their names."""

import json
import logging
from pathlib import Path

import javaproperties
import pytest

from daemon.config.config import resolve
from daemon.config.written import properties_of
from daemon.models.persistence.torchserve_snapshots import MOST_FILES, TorchServeSnapshots
from daemon.models.registrar import no_progress
from tests.kit.build import make_config
from tests.kit.daemon import StubDaemon

NOON = 1_900_000_000.0


class Clock:
    """The time of day, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def snapshots_of(bench: StubDaemon, clock: Clock, **properties: str) -> TorchServeSnapshots:
    return TorchServeSnapshots(bench.root / "logs" / "config", bench.registry, properties, clock)


def written(bench: StubDaemon) -> list[Path]:
    return sorted((bench.root / "logs" / "config").iterdir())


async def test_a_snapshot_is_named_as_torchserves_and_holds_its_fields(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    url = bench.mar()
    await bench.register(url, workers=2)

    snapshots_of(bench, Clock(), model_store="/store").write("startup")

    (file,) = written(bench)
    keys = javaproperties.loads(file.read_text())
    document = json.loads(keys["model_snapshot"])
    assert file.name[14:] == "000-startup.cfg" and file.name[:14].isdecimal()
    assert (keys["model_store"], document["name"], document["modelCount"], document["created"]) == (
        "/store",
        file.name,
        1,
        int(NOON * 1000),
    )
    assert document["models"] == {
        "m": {
            "1.0": {
                "defaultVersion": True, "marName": url, "minWorkers": 2, "maxWorkers": 2, "batchSize": 1,
                "maxBatchDelay": 100, "responseTimeout": 120, "startupTimeout": 120, "runtimeType": "python",
            }
        }
    }  # fmt: skip


async def test_a_daemon_started_from_a_snapshot_serves_the_same(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path)
    model = await bench.register(bench.mar(), workers=2)
    await bench.register(bench.mar(version="2.0"), workers=1)
    await bench.registrar.set_default("m", "2.0")
    snapshots_of(bench, Clock(), model_store=str(bench.store)).write("shutdown")
    (tmp_path / "other").mkdir()

    config = resolve({"ts_config": str(written(bench)[0]), "state_dir": str(tmp_path / "other")}, {})

    assert config.models == (f"m={model.source.url}", "m=m-2.0.mar")
    block = config.snapshot_block["m"]
    assert (block["1.0"]["minWorkers"], block["1.0"]["defaultVersion"], block["2.0"]["defaultVersion"]) == (
        2,
        False,
        True,
    )


async def test_each_change_is_one_file_and_what_changes_nothing_is_none(tmp_path: Path) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    snapshots = snapshots_of(bench, clock)
    bench.registrar.ledger.saved = snapshots.changed
    model = await bench.register(bench.mar())
    clock.now += 1
    await bench.registrar.scale(model, 2, 2, synchronous=False, progress=no_progress)
    clock.now += 1
    snapshots.changed()

    assert [file.name.partition("-")[2] for file in written(bench)] == ["snapshot.cfg"] * 2


async def test_only_the_latest_files_are_kept(tmp_path: Path) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    snapshots = snapshots_of(bench, clock)
    for _ in range(MOST_FILES + 3):
        clock.now += 1
        snapshots.write("snapshot")

    files = written(bench)

    assert len(files) == MOST_FILES
    assert str(int(clock.now * 1000)) in files[-1].read_text()


async def test_a_directory_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    (tmp_path / "logs").write_text("a file")
    snapshots = snapshots_of(bench, clock)

    with caplog.at_level(logging.WARNING):
        snapshots.write("startup")
        snapshots.write("snapshot")

    assert caplog.text.count("cannot write TorchServe's snapshot") == 1


def test_the_properties_are_those_of_the_file_but_for_its_models_and_what_flags_say(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("default_workers_per_model=2\nload_models=ALL\ninference_address=http://127.0.0.1:1\n")
    (tmp_path / "store").mkdir()

    config = make_config(
        tmp_path, ts_config=str(file), model_store=str(tmp_path / "store"), inference_address="0.0.0.0:2",
        management_address="https://a:3",
    )  # fmt: skip

    assert properties_of(config) == {
        "default_workers_per_model": "2",
        "model_store": str(tmp_path / "store"),
        "inference_address": "http://0.0.0.0:2",
        "management_address": "https://a:3",
    }
