"""The values of /proc become TorchServe's gauges."""

import os
from pathlib import Path

import pytest

from tsctl.daemon.extensions.exposition.host import GB, HostMonitor

MEMINFO = "MemTotal:        8192 kB\nMemFree:         1024 kB\nMemAvailable:    2048 kB\nHugePages_Total:       0\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text(MEMINFO)
    tick(tmp_path)
    return tmp_path


def tick(proc: Path, user: int = 0, system: int = 0, idle: int = 0, iowait: int = 0, guest: int = 0) -> None:
    """Write the processor's ticks since boot; there are others as well, which do not change."""
    (proc / "stat").write_text(f"cpu  {user} 5 {system} {idle} {iowait} 1 2 3 {guest} 0\ncpu0 1 2 3\n")


@pytest.mark.parametrize(
    ("ticks", "percent"),
    [
        pytest.param({"user": 30, "system": 10, "idle": 60}, 40.0, id="user and system are busy"),
        pytest.param({"idle": 50, "iowait": 50}, 0.0, id="waiting for a disk is not"),
        pytest.param({"user": 50, "guest": 50, "idle": 50}, 50.0, id="guests are part of user"),
    ],
)
def test_the_processor_is_measured_since_the_last_time(proc: Path, ticks: dict[str, int], percent: float) -> None:
    host = HostMonitor(proc)

    tick(proc, **ticks)

    assert host.processor() == host.processor() == {"CPUUtilization": percent}, "within a tick all hear the same"
    assert host.memory() == {"MemoryUsed": 6.0, "MemoryAvailable": 2.0, "MemoryUtilization": 75.0}
    assert len(HostMonitor().read()) == 7, "of this machine"


def test_a_disk_is_used_and_available(proc: Path) -> None:
    disk = HostMonitor(proc, str(proc)).disk()

    found = os.statvfs(proc)
    assert disk["DiskUsage"] + disk["DiskAvailable"] <= found.f_blocks * found.f_frsize / GB
    assert disk["DiskUsage"] > 0
    assert 0 < disk["DiskUtilization"] <= 100


def test_what_cannot_be_read_is_left_out(proc: Path) -> None:
    host = HostMonitor(proc, "/nowhere")
    (proc / "meminfo").write_text("MemTotal: 8192 kB\n")
    (proc / "stat").unlink()

    assert host.read() == {}
    assert HostMonitor(proc / "nowhere", str(proc)).read().keys() == {"DiskUsage", "DiskAvailable", "DiskUtilization"}
