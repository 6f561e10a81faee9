"""The cgroups of this process, and the limits of processor time in them."""

from collections.abc import Callable, Iterator
from pathlib import Path

PROC = Path("/proc")


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


def groups_of(controller: str, proc: Path = PROC) -> list[Path]:
    """Return this process's `control_groups`; none where they cannot be read."""
    try:
        return control_groups(
            controller, (proc / "self" / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text()
        )
    except OSError:
        return []


def quotas(proc: Path = PROC) -> Iterator[float]:
    """Yield the cores of each cgroup above this process that limits them."""
    for directory in groups_of("cpu", proc):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                quota = quota_of(" ".join(directory.joinpath(name).read_text().strip() for name in names))
            except OSError:
                continue
            if quota is not None:
                yield quota


def has_quota() -> bool:
    """Return whether a cgroup limits the CPU time of this process and its children, whatever their priority."""
    return any(True for _ in quotas())


def own_directory(proc: Path = PROC) -> Path | None:
    """Return the directory of this process's cgroup in the v2 hierarchy; None if that is not mounted."""
    try:
        groups = (proc / "self" / "cgroup").read_text().splitlines()
        mounts = (proc / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    ours = next((line.removeprefix("0::") for line in groups if line.startswith("0::")), None)
    for line in mounts if ours is not None else ():
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        if after.split()[:1] == ["cgroup2"] and Path(ours or "/").is_relative_to(root):
            return Path(mounted) / Path(ours or "/").relative_to(root)
    return None
