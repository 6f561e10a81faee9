"""The output of `nvidia-smi` becomes TorchServe's gauges; its errors harm nothing."""

import asyncio
from pathlib import Path

import pytest

from tests.metrics.reading import shown
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.machine import gpu as room
from tsctl.daemon.core.machine.gpu import BACKOFF, FRESH, Gpu, Gpus, parse_gpus
from tsctl.daemon.metrics.families import gpus as gpu_families


def program(folder: Path, script: str) -> str:
    """Make a program that notes each of its runs."""
    file = folder / "nvidia-smi"
    file.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/runs"\n{script}\n')
    file.chmod(0o755)
    return str(file)


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        pytest.param("0, 37, 1024, 4096\n", [Gpu("0", 37.0, 1024.0, 4096.0)], id="one GPU"),
        pytest.param(
            "0, 0, 1, 4\n1, 100, 4, 4\n", [Gpu("0", 0.0, 1.0, 4.0), Gpu("1", 100.0, 4.0, 4.0)], id="two of them"
        ),
        pytest.param("0, [N/A], 1024, 4096\n", [Gpu("0", None, 1024.0, 4096.0)], id="MIG hides how busy it is"),
        pytest.param("0, [N/A], [N/A], [N/A]\n", [], id="a GPU without memory of its own"),
        pytest.param("No devices were found\n", [], id="none"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_lines_of_the_program(text: str, gpus: list[Gpu]) -> None:
    assert parse_gpus(text) == gpus


def test_torchserves_names_and_labels() -> None:
    gpus = [Gpu("0", 37.0, 1024.0, 4096.0), Gpu("1", None, 1.0, 0.0)]

    assert shown(gpu_families(gpus)) == {
        "GPUUtilization{DeviceId=0,Level=Host}": 37,
        "GPUMemoryUtilization{DeviceId=0,Level=Host}": 25,
        "GPUMemoryUsed{DeviceId=0,Level=Host}": 1024,
        "GPUMemoryUsed{DeviceId=1,Level=Host}": 1,
    }


def test_without_the_program_there_are_none() -> None:
    gpus = Gpus.of_this_machine(FakeClock(), lambda name: None)

    assert not gpus.any
    assert asyncio.run(gpus.read()) == []


async def test_it_is_asked_once_for_all_who_ask_within_a_few_seconds(tmp_path: Path) -> None:
    clock = FakeClock()
    gpus = Gpus(clock, program(tmp_path, "echo 0, 37, 1024, 4096"))

    one, other = await asyncio.gather(gpus.read(), gpus.read())
    assert one == other == [Gpu("0", 37.0, 1024.0, 4096.0)]
    await gpus.read()
    assert len(runs(tmp_path)) == 1
    clock.advance(FRESH)
    await gpus.read()

    expected = "--query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits"
    assert runs(tmp_path) == [expected] * 2


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo the driver is broken; exit 9", id="it fails"),
        pytest.param("exec sleep 60", id="it hangs"),
    ],
)
async def test_a_program_that_fails_is_left_alone_for_a_while(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "TIMEOUT", 0.2)
    clock = FakeClock()
    gpus = Gpus(clock, program(tmp_path, script))

    assert await gpus.read() == []
    clock.advance(BACKOFF - 1)
    assert await gpus.read() == []
    assert len(runs(tmp_path)) == 1
    clock.advance(1)
    assert await gpus.read() == []

    assert len(runs(tmp_path)) == 2


def test_a_program_that_is_no_program_is_none(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("")

    assert asyncio.run(Gpus(FakeClock(), str(tmp_path / "nvidia-smi")).read()) == []
