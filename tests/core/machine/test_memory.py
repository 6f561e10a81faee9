"""The memory of processes on the host and on GPUs, read from what the kernel and nvidia-smi say."""

import os
from pathlib import Path

import pytest

from tsctl.daemon.core.machine.memory import memory_of, on_gpus

MIB = 2**20
UUIDS = "0, GPU-aaa\n1, GPU-bbb\n"


def process(proc: Path, pid: int, parent: int, pss: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 0 0")
    (proc / str(pid) / "smaps_rollup").write_text(f"Rss: {2 * pss} kB\nPss: {pss} kB\nPss_Anon: 1 kB\n")


def test_a_process_takes_its_share_and_that_of_its_children_each_once(tmp_path: Path) -> None:
    for pid, parent, pss in ((10, 1, 100), (11, 10, 20), (12, 11, 3), (13, 1, 1000)):
        process(tmp_path, pid, parent, pss)

    assert memory_of([10, 11, 0, 99], tmp_path) == {"host": 123 * 1024}


def test_where_shares_are_not_told_the_resident_set_counts(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)
    (tmp_path / "10" / "smaps_rollup").unlink()
    (tmp_path / "10" / "status").write_text("VmRSS:\t  200 kB\n")

    assert memory_of([10], tmp_path) == {"host": 200 * 1024}


def test_this_process_takes_something() -> None:
    assert memory_of([os.getpid()])["host"] > MIB


@pytest.mark.parametrize(
    ("apps", "found"),
    [
        ("7, GPU-aaa, 512\n8, GPU-bbb, 100\n9, GPU-bbb, 64\n", {"gpu0": 512 * MIB, "gpu1": 64 * MIB}),
        pytest.param("7, GPU-aaa, 512\n9, GPU-aaa, 64\n", {"gpu0": 576 * MIB}, id="two on one"),
        pytest.param("7, GPU-aaa, [N/A]\nNo running processes found\n", {}, id="without numbers"),
        pytest.param("7, GPU-ccc, 512\n", {}, id="a device that is not listed"),
    ],
)
def test_the_memory_of_processes_on_each_gpu(apps: str, found: dict[str, int]) -> None:
    assert on_gpus({7, 9}, apps, UUIDS) == found
