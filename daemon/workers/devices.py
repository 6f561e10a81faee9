"""How many cores the workers may use, and how many threads each gets."""

import os
from collections.abc import Iterator
from pathlib import Path


def quota_of(cpu_max: str) -> float | None:
    """Read a cgroup v2 `cpu.max`: cores, or None for no limit.

    The file holds `QUOTA PERIOD` in microseconds, or `max PERIOD`
    (kernel documentation, admin-guide/cgroup-v2, "cpu.max").
    """
    quota, _, period = cpu_max.strip().partition(" ")
    if quota == "max" or not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def _quota_files() -> Iterator[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::"):
            here = Path("/sys/fs/cgroup") / line[3:].lstrip("/")
            for directory in (here, *here.parents):
                yield directory / "cpu.max"
                if directory == Path("/sys/fs/cgroup"):
                    return


def usable_cores() -> int:
    """Count the cores this process may use: affinity, and the tightest cgroup quota above it; at least 1."""
    cores = float(len(os.sched_getaffinity(0)))
    for file in _quota_files():
        try:
            quota = quota_of(file.read_text())
        except OSError:
            continue
        if quota is not None:
            cores = min(cores, quota)
    return max(1, int(cores))


def threads_for(cores: int, workers: int) -> int:
    """Say how many intra-op threads each worker gets: cores ÷ workers, at least 1.

    More threads than cores is far worse than too few: they spin while they wait for each other.
    """
    return max(1, cores // max(1, workers))
