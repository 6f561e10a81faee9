"""TorchServe's snapshots: files from which torchserve and tsctl start, and which scripts look for by their names."""

import json
import logging
import os
from errno import ENOSPC
from pathlib import Path
from typing import Any

import javaproperties
import pytest

from tests.kit.build import make_config
from tests.kit.daemon import StubDaemon
from tsctl.daemon.config.config import resolve
from tsctl.daemon.extensions.torchserve_logs.snapshots import (
    MOST_FILES,
    Kind,
    TorchServeSnapshots,
    name_in_store,
    properties_of,
)
from tsctl.daemon.models.registrar import no_progress

NOON = 1_900_000_000.0


class Clock:
    """The time of day, in seconds since the epoch."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def snapshots_of(bench: StubDaemon, clock: Clock, **properties: str) -> TorchServeSnapshots:
    return TorchServeSnapshots(bench.root / "logs" / "config", bench.registry, bench.store, properties, clock)


def snapshot(file: Path) -> dict[str, Any]:
    """Return the document in a file."""
    read: dict[str, Any] = json.loads(javaproperties.loads(file.read_text())["model_snapshot"])
    return read


def written(bench: StubDaemon) -> list[Path]:
    return sorted((bench.root / "logs" / "config").iterdir())


async def test_a_snapshot_is_named_as_torchserves_and_holds_its_fields(bench: StubDaemon) -> None:
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


async def test_a_snapshot_is_private_whatever_the_umask(bench: StubDaemon) -> None:
    before = os.umask(0)
    try:
        snapshots_of(bench, Clock(), model_store="/store").write("startup")
    finally:
        os.umask(before)

    (file,) = written(bench)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_daemon_started_from_a_snapshot_serves_the_same(tmp_path: Path, bench: StubDaemon) -> None:
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
    bench.registrar.ledger.changed = snapshots.changed
    model = await bench.register(bench.mar())
    clock.now += 1
    await bench.registrar.scale(model, 2, 2, synchronous=False, progress=no_progress)
    clock.now += 1
    snapshots.changed()

    assert [file.name.partition("-")[2] for file in written(bench)] == ["snapshot.cfg"] * 2


async def test_only_the_latest_files_are_kept_and_all_that_are_no_snapshots(tmp_path: Path) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    snapshots = snapshots_of(bench, clock)
    other = tmp_path / "logs" / "config" / "2024-staging.cfg"
    other.parent.mkdir(parents=True)
    other.touch()

    for _ in range(MOST_FILES + 3):
        clock.now += 1
        snapshots.write("snapshot")

    files = [file for file in written(bench) if file != other]
    assert other.exists() and len(files) == MOST_FILES
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


async def test_the_newest_file_has_the_latest_name_though_the_clock_stands_or_goes_back(tmp_path: Path) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    snapshots = snapshots_of(bench, clock)
    kinds: tuple[Kind, ...] = ("startup", "snapshot", "shutdown")

    for kind, step in zip(kinds, (0, 0, -3600), strict=True):
        clock.now += step
        snapshots.write(kind)

    assert [file.stem.partition("-")[2] for file in written(bench)] == list(kinds)


async def test_a_registration_that_may_still_fail_is_in_no_file(bench: StubDaemon) -> None:
    snapshots = snapshots_of(bench, Clock())
    snapshots.write("startup")
    bench.registrar.ledger.changed = snapshots.changed
    model = await bench.register(bench.mar())
    assert [snapshot(file)["modelCount"] for file in written(bench)] == [0, 1]

    snapshots.write("shutdown", {model})

    assert snapshot(written(bench)[-1])["models"] == {}


async def test_an_archive_that_torchserve_would_not_find_is_left_out_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bench: StubDaemon
) -> None:
    outside = tmp_path / "outside.mar"
    (bench.store / bench.mar()).rename(outside)
    await bench.register(str(outside), local_paths=True)
    snapshots = snapshots_of(bench, Clock())

    snapshots.write("startup")
    snapshots.write("shutdown")

    assert [snapshot(file)["models"] for file in written(bench)] == [{}, {}]
    sentence = f"m/1.0 is not in TorchServe's snapshots, which name archives of the model store only: {outside}"
    assert caplog.messages.count(sentence) == 1


def test_an_archive_is_named_as_it_lies_in_the_store(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    for name in ("a.mar", "b,c.mar", "team/a.mar"):
        (tmp_path / name).touch()

    assert name_in_store("a.mar", tmp_path) == name_in_store(str(tmp_path / "a.mar"), tmp_path) == "a.mar"
    assert name_in_store("team/a.mar", tmp_path) == "team/a.mar"
    for url in ("https://host/a.mar", "b,c.mar", "gone.mar", "/elsewhere/a.mar"):
        assert name_in_store(url, tmp_path) is None
    assert name_in_store("a.mar", None) is None


async def test_a_timeout_of_less_than_a_second_is_a_whole_second(tmp_path: Path) -> None:
    bench = StubDaemon(tmp_path, response_timeout="0.4")
    await bench.register(bench.mar())

    snapshots_of(bench, Clock()).write("startup")

    assert snapshot(written(bench)[0])["models"]["m"]["1.0"]["responseTimeout"] == 1


async def test_a_file_that_cannot_be_written_in_full_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, clock = StubDaemon(tmp_path), Clock()
    snapshots = snapshots_of(bench, clock)

    def full(path: Path, text: str, encoding: str) -> int:
        path.write_bytes(text.encode()[:10])
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        snapshots.changed()
    assert (written(bench), list((tmp_path / "logs").glob(".*"))) == ([], [])
    snapshots.changed()

    assert len(written(bench)) == 1  # the change was not taken for written


def test_what_flags_and_the_environment_say_is_read_from_the_file_as_it_was(tmp_path: Path) -> None:
    flags: dict[str, str | None] = {
        "response_timeout": "30", "allowed_urls": "file://.*,https://a/.*", "decode_input": "false",
        "hide_environment": "SECRET.*", "models": "a.mar", "log_level": "debug",
    }  # fmt: skip
    config = resolve(flags, {"TSCTL_QUEUE_JOBS": "7", "TSCTL_METRICS_MODE": "log"})
    file = tmp_path / "written.cfg"

    properties = properties_of(config)
    file.write_text(javaproperties.dumps(properties))
    again = resolve({"ts_config": str(file)}, {})

    assert "load_models" not in properties  # `model_snapshot` names the models
    assert again.notes == ()
    for name in ("response_timeout", "allowed_urls", "decode_input", "hide_environment", "queue_jobs", "metrics_mode"):
        assert getattr(again, name) == getattr(config, name)
