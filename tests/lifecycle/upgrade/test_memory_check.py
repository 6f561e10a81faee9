"""Whether two daemons fit into memory, from what /proc and the cgroups say."""

from pathlib import Path

import pytest

from tsctl.daemon.core.machine.processes import descendants, left_in, proportional
from tsctl.daemon.lifecycle.upgrade.old import MemoryCheck, measure, shortage

MIB = 1024**2


def test_what_fits_is_no_shortage() -> None:
    assert shortage(MemoryCheck(100 * MIB, 100 * MIB)) is None


def test_a_shortage_says_what_is_needed_what_there_is_and_what_to_do() -> None:
    said = shortage(MemoryCheck(3 * 1024 * MIB, 700 * MIB, "the cgroup /sys/fs/cgroup/a"))

    assert said is not None
    assert "about 3 GiB more memory" in said
    assert "the cgroup /sys/fs/cgroup/a has 700 MiB left" in said
    assert "--no-check-memory" in said


def test_descendants_are_children_and_their_children() -> None:
    parents = {1: 0, 10: 1, 11: 10, 12: 11, 13: 10, 20: 1}

    assert sorted(descendants(parents, 10)) == [11, 12, 13]


def test_a_proportional_set_size_is_read_in_kib() -> None:
    assert (
        proportional("55e0-7ffd ---p 00000000 [rollup]\nRss:  900 kB\nPss:  512 kB\nPss_Dirty:  1 kB\n") == 512 * 1024
    )


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    return directory


@pytest.mark.parametrize(
    ("files", "left"),
    [
        pytest.param(
            {
                "memory__max": "1000\n",
                "memory__current": "600\n",
                "memory__stat": "anon 300\ninactive_file 80\nactive_file 20\n",
            },
            (500, 1000),
            id="version 2: what can be dropped counts as free",
        ),
        pytest.param(
            {
                "memory__limit_in_bytes": "1000\n",
                "memory__usage_in_bytes": "900\n",
                "memory__stat": "inactive_file 7\ntotal_inactive_file 50\ntotal_active_file 60\n",
            },
            (210, 1000),
            id="version 1: with the groups below it",
        ),
        pytest.param(
            {"memory__max": "1000\n", "memory__current": "1200\n", "memory__stat": "anon 1200\n"},
            (0, 1000),
            id="never less than nothing",
        ),
        pytest.param({"memory__max": "max\n", "memory__current": "1\n", "memory__stat": ""}, None, id="no limit"),
        pytest.param({}, None, id="no memory controller"),
    ],
)
def test_what_a_cgroup_leaves_of_its_limit(tmp_path: Path, files: dict[str, str], left: tuple[int, int] | None) -> None:
    group = write(tmp_path / "group", **files)

    assert left_in(group) == (left and (left[0], f"the cgroup {group}", left[1]))


def test_a_daemon_needs_what_it_and_its_descendants_take_now(tmp_path: Path) -> None:
    write(tmp_path, meminfo="MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    for pid, parent, pss in ((5, 1, 100), (6, 5, 200), (7, 6, 300), (8, 1, 5000)):
        write(tmp_path / str(pid), stat=f"{pid} (a) b) S {parent} 0", smaps_rollup=f"Rss: 9 kB\nPss: {pss} kB\n")
    (tmp_path / "7" / "smaps_rollup").unlink()  # another user's
    write(tmp_path / "7", status="VmPeak: 1 kB\nVmRSS: 400 kB\n")

    assert measure(5, tmp_path) == MemoryCheck(700 * 1024, 4000 * 1024)
