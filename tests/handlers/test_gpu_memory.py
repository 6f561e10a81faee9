"""What a worker holds on its GPUs, as it tells itself."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from tsctl.handlers.gpu_memory import CONTEXT, HeldMemory, grown, held_after_load, worth_telling

GIB = 2**30


@pytest.mark.parametrize(
    ("before", "after", "reserved", "held"),
    [
        pytest.param([80], [70], [8], [10], id="what the card lost: the context, too"),
        pytest.param([80 * GIB], [20 * GIB], [8 * GIB], [9 * GIB], id="not what others have taken meanwhile"),
        pytest.param([80 * GIB], [20 * GIB], [0], [60 * GIB], id="all of it, where another library or a child runs"),
        pytest.param([80], [75], [8], [8], id="at least what torch holds, if another has left meanwhile"),
        pytest.param([80, 80], [70, 80], [8, 0], [10, 0], id="on each card"),
        pytest.param([], [], [8], [8 + CONTEXT], id="without NVML: a context beside it"),
        pytest.param([], [], [0], [0], id="none where torch has not been used"),
    ],
)
def test_after_a_load(before: list[int], after: list[int], reserved: list[int], held: list[int]) -> None:
    assert held_after_load(before, after, reserved, [True] * len(reserved)) == held


def test_a_worker_that_has_not_touched_a_gpu_holds_nothing_there() -> None:
    assert held_after_load([80, 80], [20, 70], [0, 8], [False, True]) == [0, 10]


def test_this_process_has_no_context_and_a_child_may_have_one() -> None:
    """In a process of its own, because others of this run may have used CUDA."""
    program = """
import subprocess
from tsctl.handlers.gpu_memory import may_use
print(may_use(2))
with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
    print(may_use(2))
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[False, False]", "[True, True]"]


def test_then_it_grows_with_torchs_allocator() -> None:
    assert grown([10], [8], [20]) == [22]


@pytest.mark.parametrize(
    ("told", "now", "worth"), [([160], [170], False), ([160], [171], True), ([160], [149], True), ([0], [1], True)]
)
def test_small_changes_are_not_told(told: list[int], now: list[int], worth: bool) -> None:
    assert worth_telling(told, now) is worth


class Card:
    """One card, and torch's allocator there."""

    def __init__(self) -> None:
        self.free, self.reserved = 80 * GIB, 0

    def read(self, names: Sequence[str]) -> list[int]:
        return [self.free for _ in names]

    def allocated(self, count: int) -> list[int]:
        return [self.reserved] * count


def test_a_worker_tells_after_its_load_and_when_that_has_changed() -> None:
    card = Card()
    held = HeldMemory(["0"], card.read, card.allocated, lambda count: [True] * count)
    card.free, card.reserved = 60 * GIB, 19 * GIB
    loaded, same = held.after_load(), held.news()
    card.reserved = 30 * GIB

    assert (loaded, same) == ([20 * GIB], None)
    assert held.news() == [31 * GIB]
    assert held.news() is None


def test_on_the_cpu_nothing_is_read() -> None:
    held = HeldMemory([], lambda names: pytest.fail("read"), lambda count: pytest.fail("read"))

    assert held.after_load() == []
