"""The memory of GPUs, from the lines of nvidia-smi."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tsctl.daemon.core.machine.gpu_memory import GpuMemory, parse_gpu_memory, read_gpu_memory

MIB = 2**20
APPS = "7, GPU-aaa, 512\n8, GPU-bbb, 100\n9, GPU-aaa, 64\n"
FREE = "0, GPU-aaa, 1000\n1, GPU-bbb, 3000\n"


@pytest.mark.parametrize(
    ("visible", "free", "taken"),
    [
        pytest.param(["0", "1"], {0: 1000, 1: 3000}, {7: {0: 576}, 8: {1: 100}}, id="all GPUs"),
        pytest.param(["1"], {0: 3000}, {7: {}, 8: {0: 100}}, id="the only visible one is the first for workers"),
        pytest.param(["1", "0"], {1: 1000, 0: 3000}, {7: {1: 576}, 8: {0: 100}}, id="in another order"),
        pytest.param(["GPU-b"], {0: 3000}, {7: {}, 8: {0: 100}}, id="named by the beginning of a UUID"),
        pytest.param(["MIG-123"], {}, {7: {}, 8: {}}, id="a part of a GPU tells no numbers"),
        pytest.param([], {}, {7: {}, 8: {}}, id="none"),
    ],
)
def test_gpus_have_the_numbers_that_workers_use(
    visible: Sequence[str], free: dict[int, int], taken: dict[int, dict[int, int]]
) -> None:
    families = {7: {7, 9}, 8: {8}}

    found = parse_gpu_memory(families, APPS, FREE, visible)

    assert found.free == {gpu: size * MIB for gpu, size in free.items()}
    assert found.taken == {pid: {gpu: size * MIB for gpu, size in sizes.items()} for pid, sizes in taken.items()}


def test_a_gpu_without_numbers_is_missing() -> None:
    found = parse_gpu_memory({7: {7}}, "7, GPU-aaa, [N/A]\n", "0, GPU-aaa, [N/A]\n1, GPU-bbb, 5\n", ["0", "1"])

    assert found == GpuMemory({1: 5 * MIB}, {7: {}})


def test_the_program_is_asked_for_processes_and_for_free_memory(tmp_path: Path) -> None:
    program = tmp_path / "smi"
    answers = 'case "$1" in *compute-apps*) echo "7, GPU-aaa, 512";; *) echo "0, GPU-aaa, 1000";; esac'
    program.write_text(f"#!/bin/sh\n{answers}\n")
    program.chmod(0o755)

    found = read_gpu_memory([7], ["0"], str(program), tmp_path)

    assert found == GpuMemory({0: 1000 * MIB}, {7: {0: 512 * MIB}})


@pytest.mark.parametrize("script", [None, "exit 9"], ids=["not there", "its driver is broken"])
def test_a_program_that_fails_leaves_everything_unknown(script: str | None, tmp_path: Path) -> None:
    program = tmp_path / "smi"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    assert not read_gpu_memory([7], ["0"], str(program)).free
