"""A worker's cgroup: where it may be, and that all in it dies with it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsctl.daemon.core.machine.cgroups import own_directory
from tsctl.daemon.core.machine.processes import start_of
from tsctl.daemon.workers.processes.spawn import Cgroups, clear
from tsctl.handlers.own_process import enter_group

MOUNTS = """\
22 1 0:21 / /proc rw - proc proc rw
30 1 0:26 {root} {mounted} rw,nosuid shared:4 - cgroup2 cgroup2 rw
31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""


@pytest.mark.parametrize(
    ("groups", "root", "mounted", "found"),
    [
        pytest.param("0::/a.slice/b", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/a.slice/b", id="a service"),
        pytest.param("9:name=systemd:/x\n0::/", "/", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified", id="hybrid"),
        pytest.param("0::/a/b", "/a", "/sys/fs/cgroup", "/sys/fs/cgroup/b", id="mounted from below"),
        pytest.param("0::/other", "/a", "/sys/fs/cgroup", None, id="ours is not mounted"),
        pytest.param("4:memory:/x", "/", "/sys/fs/cgroup", None, id="only v1"),
    ],
)
def test_our_own_cgroup(groups: str, root: str, mounted: str, found: str | None, tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text(groups + "\n")
    (tmp_path / "self" / "mountinfo").write_text(MOUNTS.format(root=root, mounted=mounted))

    assert own_directory(tmp_path) == (None if found is None else Path(found))


def test_without_proc_there_is_none(tmp_path: Path) -> None:
    assert own_directory(tmp_path) is None


def test_a_directory_that_is_no_cgroup_is_not_used_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("")

    assert Cgroups.open(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.procs"]


def test_who_cannot_enter_stays_where_it_is(tmp_path: Path) -> None:
    enter_group("")
    enter_group(str(tmp_path / "nowhere"))


@pytest.fixture
def groups() -> Iterator[Cgroups]:
    found = Cgroups.open()
    if found is None:
        pytest.skip("this user may make no cgroup")
    yield found
    found.remove_all()


def sleep_in(group: str) -> "subprocess.Popen[bytes]":
    program = f"echo 0 > {group}/cgroup.procs; setsid sleep 60 & exec sleep 60"
    process = subprocess.Popen(["sh", "-c", program], start_new_session=True)
    while len((Path(group) / "cgroup.procs").read_text().split()) < 2:
        os.sched_yield()
    return process


def test_all_in_a_cgroup_is_killed_and_nothing_else(groups: Cgroups) -> None:
    one, other = groups.make(), groups.make()
    killed, kept = sleep_in(one), sleep_in(other)

    groups.kill(one)

    assert killed.wait() == -9
    assert kept.poll() is None and len((Path(other) / "cgroup.procs").read_text().split()) == 2
    groups.remove_all()
    assert kept.wait() == -9
    assert not Path(one).exists() and not Path(other).exists()


def test_those_of_a_daemon_that_is_no_more_are_killed_and_those_of_a_living_one_are_not(groups: Cgroups) -> None:
    here = Path(groups.make()).parent.parent
    dead, living = here / f"tsctl-7-{os.getpid()}-1", here / f"tsctl-7-{os.getpid()}-{start_of(os.getpid())}"
    for folder in (dead, living):
        (folder / "1").mkdir(parents=True)
    killed = sleep_in(str(dead / "1"))

    clear(here, 7)

    assert killed.wait() == -9
    assert not dead.exists() and living.exists()
    Cgroups(living).remove_all()
    assert not living.exists()


def test_a_daemon_that_nobody_has_reaped_yet_has_ended() -> None:
    process = subprocess.Popen(["sleep", "60"])
    assert start_of(process.pid) > 0

    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert start_of(process.pid) == 0
    process.wait()
