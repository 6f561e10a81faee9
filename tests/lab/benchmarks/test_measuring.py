"""The readers of /proc and of wrk's output."""

from pathlib import Path

import pytest

from tests.lab.benchmarks.machine import _processor
from tests.lab.benchmarks.measuring import processes, wrk
from tests.lab.benchmarks.measuring.wrk import NoWrk


def stat(pid: int, parent: int, name: str = "python", state: str = "S", ticks: int = 0) -> str:
    fields = [state, parent, *[0] * 9, ticks, 0, 0, 0, *[0] * 30]
    return f"{pid} ({name}) " + " ".join(map(str, fields))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A server 10 with children 11 and 12, a grandchild 13, a zombie 14, and somebody else's 20."""
    for pid, parent, state in ((10, 1, "S"), (11, 10, "S"), (12, 10, "R"), (13, 12, "S"), (14, 10, "Z"), (20, 1, "S")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(stat(pid, parent, state=state, ticks=pid * 100))
        (folder / "smaps_rollup").write_text(f"00-ff ---p [rollup]\nRss: 99 kB\nPss:      {pid} kB\nPss_Anon: 7 kB\n")
        (folder / "cmdline").write_bytes(b"python\0-m\0worker\0")
    (tmp_path / "version").write_text("Linux")
    return tmp_path


@pytest.mark.parametrize("name", ["java", "a b", "a) S 1 (b", "(x)"])
def test_a_name_may_hold_anything(name: str) -> None:
    process = processes.parse_stat(stat(7, 3, name, ticks=250))

    assert (process.pid, process.parent, process.name, process.state) == (7, 3, name, "S")
    assert process.cpu == 250 / processes._TICKS


def test_a_tree_is_a_process_and_all_its_descendants(proc: Path) -> None:
    assert [process.pid for process in processes.tree(10, proc)] == [10, 11, 12, 13]


def test_processor_time_is_that_of_the_tree(proc: Path) -> None:
    assert processes.cpu_of(10, proc) == pytest.approx((10 + 11 + 12 + 13) * 100 / processes._TICKS)


def test_memory_is_that_of_the_tree(proc: Path) -> None:
    assert processes.pss_of(10, proc) == (10 + 11 + 12 + 13) * 1024


def test_a_process_that_is_gone_costs_nothing(proc: Path) -> None:
    (proc / "13" / "smaps_rollup").unlink()

    assert processes.pss_of(12, proc) == 12 * 1024
    assert (processes.cpu_of(99, proc), processes.pss_of(99, proc)) == (0, 0)
    assert processes.command_of(99, proc) == ""


def test_a_command_is_one_line(proc: Path) -> None:
    assert processes.command_of(11, proc) == "python -m worker "


PRINTED = """\
Running 6s test @ http://127.0.0.1:1/
RESULT {"requests": 1000, "duration": 2000000, "connect": 1, "read": 2, "write": 0, "status": 3, "timeout": 4, \
"p50": 1500, "p90": 2000, "p95": 2500, "p99": 9000, "max": 12000}
"""


def test_what_wrk_counted_is_read() -> None:
    found = wrk.parse(PRINTED)

    assert (found.requests, found.errors, found.rate) == (1000, 10, 495.0)
    assert (found.p50, found.p95, found.p99, found.longest) == (0.0015, 0.0025, 0.009, 0.012)


def test_without_figures_it_says_what_wrk_printed() -> None:
    with pytest.raises(NoWrk, match="unable to connect"):
        wrk.parse("unable to connect")


def test_the_script_quotes_what_it_is_given() -> None:
    made = wrk.script([Path('/a "b"/c')], {"Authorization": 'Bearer "x"'})

    assert 'wrk.body = read("/a \\"b\\"/c")' in made
    assert 'wrk.headers["Authorization"] = "Bearer \\"x\\""' in made


def test_several_bodies_are_sent_in_turn() -> None:
    made = wrk.script([Path("/a"), Path("/b")], {})

    assert 'ipairs({"/a", "/b"})' in made
    assert "wrk.body" not in made


def test_without_wrk_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(NoWrk, match=r"python -m tests\.lab system-packages"):
        wrk.version()


def test_a_processor_is_its_name_and_what_torch_can_use() -> None:
    assert _processor("model name\t: Fast 9\nflags\t\t: sse avx2 amx_tile\n") == "Fast 9 (avx2, amx_tile)"
