"""What a load took is known after a restart: the time that it takes, and the memory."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.residency.resident_daemon import ResidentDaemon
from tests.extensions.residency.stub_house import WarmStubs
from tests.kit.daemon import until
from tests.kit.version import StubVersion
from tsctl.daemon.extensions.residency import service
from tsctl.daemon.extensions.residency.residence import LONGEST_LOAD, MOST_MEMORY, Residence, residence_of
from tsctl.daemon.models.persistence import snapshot
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides

GIB = 2**30


async def loaded(root: Path, name: str = "m") -> ResidentDaemon:
    """Return a daemon with a model whose load took 40 s, and 3 GiB."""
    bench = ResidentDaemon(root)
    model = await bench.register(bench.mar(name))
    residence_of(model).recall(40.0, {"host": 3 * GIB})
    return bench


def kept(bench: ResidentDaemon) -> Any:
    """Return the part of the snapshot on the disk."""
    found = snapshot.read_snapshot(bench.snapshot)
    return {} if found is None else found.extensions.get("residency", {})


async def test_a_daemon_that_stops_writes_what_loads_took(tmp_path: Path) -> None:
    bench = await loaded(tmp_path)

    await bench.registrar.ledger.keep_measured()

    assert kept(bench) == {"m": {"1.0": {"seconds": 40.0, "memory": {"host": 3 * GIB}}}}


async def test_what_a_load_took_is_measured_of_its_worker_and_its_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Sequence[int]] = []

    def memory_of(pids: Sequence[int]) -> Mapping[str, int]:
        measured.append(pids)
        return {"host": 3 * GIB}

    monkeypatch.setattr(service, "memory_of", memory_of)
    monkeypatch.setattr(ResidentDaemon, "templates", templates := WarmStubs())
    templates.pids["m"] = 77
    bench = ResidentDaemon(tmp_path)
    model = await bench.register(bench.mar())

    await until(lambda: residence_of(model).memory == {"host": 3 * GIB})
    assert measured == [[bench.engine.workers[0].pid, 77]]


async def test_a_version_that_is_loaded_on_demand_is_estimated_by_its_last_load(tmp_path: Path) -> None:
    bench = ResidentDaemon(tmp_path)
    on_demand = Registration(url=bench.mar(), overrides=Overrides(workers=1, loading="on_demand"))
    model = await bench.registrar.register(on_demand)
    residence_of(model).recall(40.0, {"host": 3 * GIB})
    await bench.registrar.ledger.keep_measured()

    again = await bench.restart()

    (restored,) = again.registry
    assert (residence_of(restored).retry_after, residence_of(restored).memory) == (40, {"host": 3 * GIB})


async def test_a_disk_that_is_full_forgets_what_loads_took_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    bench = await loaded(tmp_path)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(snapshot, "write_snapshot", full)
        await bench.registrar.ledger.keep_measured()

    assert "what was measured is forgotten" in caplog.text
    assert kept(bench)["m"]["1.0"]["seconds"] != 40.0
    await bench.registrar.ledger.save()
    assert kept(bench)["m"]["1.0"]["seconds"] == 40.0


@pytest.mark.parametrize(
    ("seconds", "memory"),
    [
        pytest.param(0.0, {}, id="nothing"),
        pytest.param(-1.0, {"host": -1}, id="less than nothing"),
        pytest.param(LONGEST_LOAD, {"host": MOST_MEMORY}, id="more than a machine has"),
    ],
)
def test_values_that_cannot_be_are_ignored(seconds: float, memory: Mapping[str, int]) -> None:
    residence = Residence(StubVersion(workers=0).model)

    residence.recall(seconds, memory)

    assert (residence.load_seconds, residence.memory) == (None, {})
