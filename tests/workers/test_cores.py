"""How many cores there are, and how they are shared."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.said import said_in
from tsctl.daemon.core.machine import cgroups as room
from tsctl.daemon.core.machine.cgroups import control_groups, quota_of
from tsctl.daemon.workers.cores import chosen_threads, crowding, oversubscription, threads_for, usable_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2.0),
        ("50000 100000\n", 0.5),
        ("150000 100000", 1.5),
        ("max 100000\n", None),
        ("max", None),
        ("", None),
        ("100000", None),
        ("100000 0", None),
        ("many 100000", None),
        pytest.param("-1 100000", None, id="no limit, in version 1"),
    ],
)
def test_a_quota_is_a_number_of_cores(text: str, cores: float | None) -> None:
    assert quota_of(text) == cores


@pytest.mark.parametrize(
    ("cores", "workers", "chosen", "threads"),
    [
        pytest.param(8, 1, None, 8, id="a lone worker gets all"),
        pytest.param(8, 2, None, 4, id="two share"),
        pytest.param(8, 3, None, 2, id="a rest stays unused"),
        pytest.param(8, 8, None, 1, id="a core each"),
        pytest.param(8, 9, None, 1, id="nobody gets none"),
        pytest.param(8, 0, None, 8, id="before there is any worker"),
        pytest.param(8, 4, 1, 1, id="fewer are chosen"),
        pytest.param(2, 4, 3, 3, id="more are chosen"),
    ],
)
def test_workers_share_the_cores(cores: int, workers: int, chosen: int | None, threads: int) -> None:
    assert threads_for(cores, workers, chosen) == threads


@pytest.mark.parametrize(
    ("affinity", "quotas", "cores"),
    [
        pytest.param(4, [], 4, id="without cgroups the affinity counts"),
        pytest.param(4, ["max 100000"], 4, id="no limit is no limit"),
        pytest.param(4, ["200000 100000"], 2, id="a quota counts"),
        pytest.param(4, ["300000 100000", "150000 100000"], 1, id="the tightest above counts, rounded down"),
        pytest.param(4, ["50000 100000"], 1, id="there is always one"),
        pytest.param(2, ["800000 100000"], 2, id="a wide quota adds nothing"),
        pytest.param(4, [None, "200000 100000"], 2, id="a group without the file is passed over"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_usable_cores(
    version: int,
    affinity: int,
    quotas: Sequence[str | None],
    cores: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = [tmp_path / str(index) for index in range(len(quotas))]
    for group, text in zip(groups, quotas, strict=True):
        group.mkdir()
        quota, _, period = (text or "").replace("max", "max" if version == 2 else "-1").partition(" ")
        if text is not None and version == 2:
            (group / "cpu.max").write_text(f"{quota} {period}\n")
        elif text is not None:
            (group / "cpu.cfs_quota_us").write_text(f"{quota}\n")
            (group / "cpu.cfs_period_us").write_text(f"{period}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    monkeypatch.setattr(room, "groups_of", lambda *given: groups)

    assert usable_cores() == cores


V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)


@pytest.mark.parametrize(
    ("groups", "mounts", "directories"),
    [
        pytest.param("0::/a/b\n", V2, ["a/b", "a", ""], id="version 2: the group and all above it"),
        pytest.param("0::/\n", V2, [""], id="in a namespace of its own"),
        pytest.param(
            "4:memory:/x\n1:cpu,cpuacct:/a\n0::/y\n", V1, ["cpu,cpuacct/a", "cpu,cpuacct"], id="version 1: that of cpu"
        ),
        pytest.param("2:cpuset:/x\n", V1, [], id="version 1 without cpu"),
        pytest.param(
            "0::/docker/c/d\n", V2.replace(" / ", " /docker/c "), ["d", ""], id="a part of the hierarchy is mounted"
        ),
        pytest.param("0::/../other\n", V2.replace(" / ", " /docker/c "), [""], id="a group outside that part"),
        pytest.param("0::/docker/cc\n", V2.replace(" / ", " /docker/c "), [""], id="a name that only begins the same"),
        pytest.param("", V2, [], id="no groups"),
        pytest.param("0::/a\n", "", [], id="no mounts"),
        pytest.param("0::/a\n", "22 1 8:1 / / rw - ext4 /dev/root rw\n", [], id="only other mounts"),
    ],
)
def test_the_groups_that_limit_the_cores(groups: str, mounts: str, directories: Sequence[str]) -> None:
    assert control_groups("cpu", groups, mounts) == [Path("/sys/fs/cgroup") / each for each in directories]


@pytest.mark.parametrize(
    ("text", "threads"),
    [("4", 4), (" 2 ", 2), ("4,2,1", 4), ("", None), ("0", None), ("-1", None), ("many", None), ("²", None)],
)
def test_the_operator_may_choose_the_threads(text: str, threads: int | None) -> None:
    assert chosen_threads({"OMP_NUM_THREADS": text}) == threads
    assert chosen_threads({}) is None


@said_in("too_many.txt")
def test_oversubscription(given: str) -> str:
    return oversubscription(**json.loads(given)) or "no"


def test_the_processes_of_a_worker_count_one_by_one() -> None:
    warning = "4 processes share 2 cores and slow each other down; at most 2 would be faster"
    assert oversubscription(2, 1, None, processes=4) == warning
    assert oversubscription(4, 2, None, processes=2) is None


def test_the_models_own_threads_win_over_the_operators_and_the_warning_names_them() -> None:
    warning = "2 × 8 threads share 8 cores and slow each other down; `threads` is 8: 4 would be faster"

    assert oversubscription(8, 2, 1, of_model=8) == warning
    assert oversubscription(8, 2, 8, of_model=4) is None


def test_the_handlers_own_threads_win_over_all_that_was_said() -> None:
    warning = "2 × 8 threads share 8 cores and slow each other down; the handler has set 8 threads itself: 4 would be"

    assert oversubscription(8, 2, 1, of_model=2, of_handler=8) == f"{warning} faster"
    assert oversubscription(8, 2, 8, of_model=8, of_handler=4) is None
    assert (
        oversubscription(2, 4, of_handler=1)
        == "4 workers share 2 cores and slow each other down; at most 2 would be faster"
    )


SLOW = "threads, and slow each other down while they work at once"


@pytest.mark.parametrize(
    ("cores", "threads", "of_each", "told"),
    [
        pytest.param(2, 2, [2, 2], (f"2 models share 2 cores with 4 {SLOW}", "1"), id="two with all cores each"),
        pytest.param(8, 8, [8, 8, 0, 4], (f"3 models share 8 cores with 20 {SLOW}", "2"), id="one has no worker"),
        pytest.param(2, 1, [1, 2, 2], None, id="one that has few enough"),
        pytest.param(8, 4, [4, 4], None, id="as many as there are cores"),
        pytest.param(1, 1, [1, 1, 1], None, id="fewer than one each are not to be had"),
        pytest.param(2, 2, [2], None, id="alone"),
    ],
)
def test_several_models_with_more_threads_than_cores(
    cores: int, threads: int, of_each: list[int], told: tuple[str, str] | None
) -> None:
    expected = None if told is None else (told[0], f"`tsctl set MODEL --threads {told[1]}` for each")

    assert crowding(cores, threads, of_each) == expected
