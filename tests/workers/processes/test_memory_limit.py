"""A process's memory, and when its limit is exceeded."""

import subprocess
import sys
from pathlib import Path

import pytest

from tsctl.daemon.setting_values import size_text
from tsctl.daemon.workers.processes.memory_limit import excess, memory_of, memory_of_group

STATUS = """Name:\tpython
VmRSS:\t  900000 kB
RssAnon:\t  300000 kB
RssFile:\t  500000 kB
RssShmem:\t  100000 kB
VmSwap:\t    2000 kB
"""


def test_what_only_memory_and_swap_hold_counts(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(STATUS)

    assert memory_of(7, tmp_path) == 302_000 * 1024


def test_the_ranks_of_a_worker_count_too(tmp_path: Path) -> None:
    for pid in ("7", "8", "9"):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "status").write_text(STATUS)
    for thread, children in (("7", "8 "), ("70", "9 ")):
        (tmp_path / "7" / "task" / thread).mkdir(parents=True)
        (tmp_path / "7" / "task" / thread / "children").write_text(children)

    assert memory_of_group(7, tmp_path) == 3 * 302_000 * 1024
    assert memory_of_group(6, tmp_path) == 0


def test_a_process_that_has_gone_has_none(tmp_path: Path) -> None:
    assert memory_of(7, tmp_path) == 0


def test_a_process_has_what_it_has_written() -> None:
    """Of a process that does nothing else: in this one, memory of other tests may go meanwhile."""
    written = 2**26
    program = f"held = bytearray(b'x') * {written}; print(flush=True); input()"
    command = [sys.executable, "-I", "-S", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        has = memory_of(process.pid)
        process.communicate(b"\n")

    assert written <= has <= 2 * written


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (4 * 2**30, "4 GiB"),
        (1536 * 2**20, "1.5 GiB"),
        (700 * 2**20, "700 MiB"),
        (1010 * 2**20, "1010 MiB"),
        (2000 * 2**30, "2000 GiB"),
        (100, "100 bytes"),
    ],
)
def test_a_size_is_written_as_people_do(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_worker_at_its_limit_stays_and_one_above_it_does_not() -> None:
    limit = 4 * 2**30

    assert excess(limit, limit) is None
    assert excess(5 * 2**30, limit) == "it was over its memory limit of 4 GiB: it had 5 GiB"
