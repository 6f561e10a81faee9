"""A budget for GPUs binds before the first load, and by what the workers tell."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.extensions.residency.stub_house import StubHouse
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.residency import CONTEXT, FirstLoad, first_load
from tsctl.daemon.extensions.residency.service import ResidencyService
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import Placement

GIB = 2**30


def house(gpus: int = 1, limit: int = 20 * GIB) -> StubHouse:
    return StubHouse(limits={f"gpu{gpu}": limit for gpu in range(gpus)})


def add(house: StubHouse, directory: Path, name: str, weights: int, gpus: int = 1, **settings: Any) -> ModelVersion:
    """Add a version that was never loaded, whose file of weights has so many bytes, all zero and none on the disk."""
    model = house.add(name, start=False, devices=tuple(range(gpus)), **settings)
    residence_of(model).memory = {}
    model.source = dataclasses.replace(model.source, directory=directory / name, manifest=manifest())
    write(directory / name, weights)
    model.start()
    return model


def manifest(serialized: str | None = "weights.pt") -> Manifest:
    return Manifest("m", "1.0", "h", serialized_file="weights.pt" if serialized else None)


def write(directory: Path, weights: int) -> Path:
    directory.mkdir()
    with (directory / "weights.pt").open("wb") as file:
        file.truncate(weights)
    (directory / "notes.txt").write_bytes(bytes(100))
    return directory


@pytest.mark.parametrize(
    ("serialized", "gpus", "expected"),
    [
        pytest.param("weights.pt", 1, FirstLoad(1100, 1000 + CONTEXT), id="the file of weights, and a context"),
        pytest.param("weights.pt", 2, FirstLoad(1100, 500 + CONTEXT), id="which several GPUs share"),
        pytest.param(None, 1, FirstLoad(1100, 1100 + CONTEXT), id="all files, where none is named"),
    ],
)
def test_the_first_load_is_estimated_from_the_archive(
    serialized: str | None, gpus: int, expected: FirstLoad, tmp_path: Path
) -> None:
    assert first_load(write(tmp_path / "m", 1000), manifest(serialized), gpus) == expected


def test_a_model_of_12_gib_is_not_let_in_beside_another_one_with_a_budget_of_20(tmp_path: Path) -> None:
    stub = house()
    first, second = (add(stub, tmp_path, name, 12 * GIB) for name in ("first", "second"))
    stub.ask(first)
    stub.ask(second)

    states = [residence_of(model).state for model in (first, second)]
    assert states == [ResidenceState.LOADING, ResidenceState.UNLOADED]


@pytest.mark.parametrize(
    ("budget", "gpus", "warned"), [("gpu=1GiB", 0, True), ("gpu=1GiB", 1, False), ("1GiB", 0, False)]
)
def test_a_budget_for_gpus_is_warned_of_where_the_daemon_uses_none(
    budget: str, gpus: int, warned: bool, tmp_path: Path
) -> None:
    house = House(tmp_path, models_memory=budget, gpus=[Card(index=0)] * gpus)

    assert bool(house.service(ResidencyService).notes) is warned


def test_on_another_gpu_there_is_room(tmp_path: Path) -> None:
    stub, placement = house(gpus=2), Placement(2)
    first, second = (add(stub, tmp_path, name, 12 * GIB, gpus=2, placement=placement) for name in ("first", "second"))
    stub.ask(first)
    stub.ask(second)

    assert [residence_of(model).state for model in (first, second)] == [ResidenceState.LOADING] * 2
    assert [worker.gpu_ids for model in (first, second) for worker in model.pool.workers] == [(0,), (1,)]


def test_a_worker_that_is_loading_counts_as_much_as_one_that_is_loaded(tmp_path: Path) -> None:
    stub = house(gpus=2)
    stub.sizes["m"] = 3
    stub.engine.gpu_memory = 15 * GIB
    model = add(stub, tmp_path, "m", 12 * GIB, gpus=2, placement=Placement(2))
    stub.ask(model)
    stub.clock.advance(10.0)
    model.scale(2, 2)
    stub.clock.settle()

    assert stub.residency.used() == {"host": 3, "gpu0": 15 * GIB, "gpu1": 15 * GIB}


def test_what_was_told_is_expected_of_the_next_load_wherever_that_is(tmp_path: Path) -> None:
    stub, placement = house(gpus=2), Placement(2)
    stub.sizes["m"] = 3
    model = add(stub, tmp_path, "m", 12 * GIB, gpus=2, placement=placement)
    residence_of(model).memory = {"host": 3, "gpu0": 15 * GIB}
    placement.take_devices([0])

    assert stub.residency._memory_of(model) == {"host": 3, "gpu1": 15 * GIB}
