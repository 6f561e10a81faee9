"""The memory of processes on the host, as the kernel tells."""

import os
from pathlib import Path

from tsctl.daemon.core.machine.processes import memory_of, own_memory, parse_stat, process_facts, room_for_more

MIB = 2**20


def process(proc: Path, pid: int, parent: int, pss: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 0 0")
    (proc / str(pid) / "smaps_rollup").write_text(
        f"Rss: {2 * pss} kB\nPss: {pss} kB\nPss_Anon: 1 kB\nPrivate_Clean: 2 kB\nPrivate_Dirty: {pss // 2} kB\n"
    )


def test_a_process_takes_its_share_and_that_of_its_children_each_once(tmp_path: Path) -> None:
    for pid, parent, pss in ((10, 1, 100), (11, 10, 20), (12, 11, 3), (13, 1, 1000)):
        process(tmp_path, pid, parent, pss)

    assert memory_of([10, 11, 0, 99], tmp_path) == {"host": 123 * 1024}


def test_where_shares_are_not_told_the_resident_set_counts(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)
    (tmp_path / "10" / "smaps_rollup").unlink()
    (tmp_path / "10" / "status").write_text("VmRSS:\t  200 kB\n")

    assert memory_of([10], tmp_path) == {"host": 200 * 1024}


def test_what_a_process_has_of_its_own_is_what_it_wrote_and_nobody_shares(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)

    assert (own_memory(10, tmp_path), own_memory(11, tmp_path)) == (50 * 1024, 0)


def test_a_further_process_takes_what_the_smallest_has_and_finds_what_is_left_and_what_others_give_back(
    tmp_path: Path,
) -> None:
    for pid, pss in ((10, 100), (11, 40), (12, 6)):
        process(tmp_path, pid, 1, pss)
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 500 kB\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("")

    each, least = room_for_more([10, 11, 99], [12, 98], tmp_path)

    assert (each, least.left, least.limit) == (20 * 1024, 503 * 1024, 1000 * 1024)


def test_a_program_may_have_any_name() -> None:
    facts = parse_stat("7 (a) b (c)) S " + " ".join(str(number) for number in range(4, 30)))

    assert facts.cpu == (14 + 15) / os.sysconf("SC_CLK_TCK") and facts.memory == 24 * os.sysconf("SC_PAGESIZE")


def test_this_process_uses_memory_and_one_that_has_ended_does_not(tmp_path: Path) -> None:
    mine = process_facts(os.getpid())

    assert mine.memory > 1_000_000 and mine.cpu > 0
    assert process_facts(0) == process_facts(7, tmp_path) == (0, 0.0)
