"""Count the cores that the workers may use, and the threads of each."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def quota_of(cpu_max: str) -> float | None:
    """Parse a cgroup v2 `cpu.max`, and return cores; None for no limit.

    The file holds `QUOTA PERIOD` in microseconds, or `max PERIOD`
    (kernel documentation, admin-guide/cgroup-v2, "cpu.max"). The two files of version 1,
    `cpu.cfs_quota_us` and `cpu.cfs_period_us`, hold the same two numbers, and -1 for no limit
    (scheduler/sched-bwc).
    """
    quota, _, period = cpu_max.strip().partition(" ")
    if quota == "max" or not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def cpu_groups(groups: str, mounts: str) -> list[Path]:
    """Return the directories of this process's CPU cgroup; see `control_groups`."""
    return control_groups("cpu", groups, mounts)


def control_groups(controller: str, groups: str, mounts: str) -> list[Path]:
    """Return the directories of this process's cgroup and of all its ancestors, innermost first.

    Args:
        controller: `cpu` or `memory`; version 2 has one hierarchy for all.
        groups: /proc/self/cgroup, cgroups(7): `ID:CONTROLLERS:PATH`, and `0::PATH` for version 2.
        mounts: /proc/self/mountinfo, proc(5): where each hierarchy is mounted, and which part of the hierarchy.
    """
    found: list[Path] = []
    for line in mounts.splitlines():
        first, _, second = line.partition(" - ")
        kind, _, options = [*second.split(" "), "", "", ""][:3]
        if kind == "cgroup2":
            path = _group(groups, lambda number, names: number == "0" and not names)
        elif kind == "cgroup" and controller in options.split(","):
            path = _group(groups, lambda number, names: controller in names.split(","))
        else:
            continue
        root, mounted = first.split(" ")[3:5]
        if path is None:
            continue
        # The mount may be a part of the hierarchy; a path outside that part cannot be seen from here.
        inside = path == root or path.startswith(root.rstrip("/") + "/")
        here = Path(mounted) / (path[len(root.rstrip("/")) :].lstrip("/") if inside else "")
        found += [each for each in (here, *here.parents) if each.is_relative_to(mounted)]
    return found


def _group(groups: str, fits: Callable[[str, str], bool]) -> str | None:
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if fits(number, names):
            return path
    return None


def _quotas() -> Iterator[str]:
    """Yield the quota of each group that has one, in the format of version 2."""
    try:
        directories = cpu_groups(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    except OSError:
        return
    for directory in directories:
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                yield " ".join(directory.joinpath(name).read_text().strip() for name in names)
            except OSError:
                continue


def has_quota() -> bool:
    """Return whether a cgroup limits the CPU time of this process and its children, whatever their priority."""
    return any(quota_of(text) is not None for text in _quotas())


def usable_cores() -> int:
    """Count the cores this process may use: affinity, and the tightest cgroup quota above it; at least 1."""
    cores = float(len(os.sched_getaffinity(0)))
    for text in _quotas():
        quota = quota_of(text)
        if quota is not None:
            cores = min(cores, quota)
    return max(1, int(cores))


def chosen_threads(environment: Mapping[str, str]) -> int | None:
    """Return the operator's number of threads for each worker: `OMP_NUM_THREADS`, None if unset or invalid.

    A list is for nested parallel regions (OpenMP 5.2, 21.1.2): the first number counts.
    """
    text = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def threads_for(cores: int, workers: int, chosen: int | None = None) -> int:
    """Return the intra-op threads of each worker: the chosen number, else cores ÷ workers, at least 1.

    More threads than cores is far worse than too few: they spin while they wait for each other.
    """
    return chosen or max(1, cores // max(1, workers))


def oversubscription(cores: int, workers: int, chosen: int | None = None, processes: int = 1) -> str | None:
    """Return a warning and a remedy if the workers of a version have more threads than there are cores; None if not.

    Args:
        processes: of each worker.
    """
    count = workers * processes
    threads = threads_for(cores, count, chosen)
    if count * threads <= cores:
        return None
    noun = "workers" if processes == 1 else "processes"
    have = f"{count} × {threads} threads" if threads > 1 else f"{count} {noun}"
    share = "1 core" if cores == 1 else f"{cores} cores"
    better = f"OMP_NUM_THREADS is {chosen}: unset it" if threads > 1 else f"at most {cores} would be faster"
    return f"{have} share {share} and slow each other down; {better}"
