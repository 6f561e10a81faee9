"""Places in shared memory: never two in one place, all free in the end, and real memory only where it is needed."""

import gc
import mmap
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.arena import GIVEN_AT_ONCE, KEPT, PAGE, SHARED_FROM, Allocator, Arena, Stored, gather, open_arena, pages
from daemon.clock import FakeClock

MIB = 1024**2


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9 * PAGE), st.integers(0, 100)), max_size=80))
def test_places_never_overlap_and_gaps_are_all_that_is_left(steps: list[tuple[bool, int, int]]) -> None:
    allocator = Allocator(32 * PAGE)
    taken: list[tuple[int, int]] = []

    for take, length, which in steps:
        if take:
            offset = allocator.take(length)
            if offset is None:
                assert all(there < length for _, there in allocator.gaps)
            else:
                taken.append((offset, length))
        elif taken:
            allocator.free(*taken.pop(which % len(taken)))
        ranges = sorted([(offset, pages(length)) for offset, length in taken] + allocator.gaps)
        ends = [offset + length for offset, length in ranges]
        assert [0, *ends] == [*(offset for offset, _ in ranges), allocator.size]
        assert allocator.used == sum(pages(length) for _, length in taken)
        starts = {offset for offset, _ in allocator.gaps}
        assert not any(offset + length in starts for offset, length in allocator.gaps), "gaps that touch are one"


def test_the_lowest_gap_that_is_large_enough_is_taken() -> None:
    allocator = Allocator(10 * PAGE)
    places = [allocator.take(length * PAGE) for length in (1, 2, 1, 3, 1)]
    assert places == [0, PAGE, 3 * PAGE, 4 * PAGE, 7 * PAGE]
    allocator.free(0, PAGE)
    allocator.free(4 * PAGE, 3 * PAGE)

    assert allocator.take(2 * PAGE) == 4 * PAGE
    assert allocator.take(1) == 0


def test_a_full_allocator_refuses_and_goes_on() -> None:
    allocator = Allocator(2 * PAGE)
    assert allocator.take(2 * PAGE) == 0

    assert allocator.take(1) is None

    allocator.free(0, 2 * PAGE)
    assert allocator.take(1) == 0


def test_a_place_is_free_when_nobody_refers_to_it() -> None:
    arena = Arena(MIB)
    stored = arena.take(3 * PAGE)
    assert stored is not None and arena.used == 3 * PAGE

    part = stored.part(PAGE, PAGE + 5)
    del stored
    assert arena.used == 3 * PAGE
    del part

    assert arena.used == 0


def test_what_is_written_is_what_a_worker_reads() -> None:
    arena = Arena(MIB)
    stored = arena.take(10)
    assert stored is not None
    stored.view[:] = b"0123456789"

    theirs = mmap.mmap(arena.descriptor, arena.size, access=mmap.ACCESS_READ)

    assert theirs[stored.offset : stored.offset + len(stored)] == b"0123456789"
    assert bytes(stored.part(2, 5)) == b"234"


def test_a_worker_can_only_read() -> None:
    arena = Arena(MIB)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(arena.descriptor, b"x")
    with pytest.raises(PermissionError):
        mmap.mmap(arena.descriptor, arena.size)


def test_memory_that_is_not_kept_goes_back_to_the_system() -> None:
    arena = Arena(2 * KEPT)
    places = [arena.take(KEPT // 2) for _ in range(3)]
    for place in places:
        assert place is not None
        place.view[::PAGE] = bytes(len(place) // PAGE)
    assert real(arena) >= 3 * KEPT // 2

    del place, places

    assert arena.used == 0
    assert real(arena) <= KEPT


def test_much_memory_goes_back_in_pieces_and_nobody_gets_it_before() -> None:
    clock = FakeClock()
    arena = Arena(2 * KEPT)
    arena.soon = clock.soon
    low, large = arena.take(KEPT - PAGE), arena.take(KEPT)
    assert low is not None and large is not None
    large.view[::PAGE] = b"x" * (KEPT // PAGE)
    assert real(arena) == KEPT

    del large
    assert arena.used == 2 * KEPT - 2 * PAGE, "one page of it is kept, and free"
    assert arena.take(KEPT) is None
    steps = 0
    while clock.step():
        steps += 1
        assert real(arena) >= KEPT - steps * GIVEN_AT_ONCE

    assert steps >= (KEPT - PAGE) // GIVEN_AT_ONCE
    assert (arena.used, real(arena)) == (KEPT - PAGE, PAGE)


def test_a_body_of_many_pieces_is_gathered_in_the_arena_if_it_is_large() -> None:
    arena = Arena(MIB)
    large = gather(bytearray(b"x" * SHARED_FROM), arena)

    assert isinstance(large, Stored) and bytes(large) == b"x" * SHARED_FROM
    assert gather(bytearray(b"small"), arena) == b"small"
    assert gather(bytearray(b"x" * SHARED_FROM), None) == b"x" * SHARED_FROM
    assert gather(bytearray(b"x" * 2 * MIB), arena) == b"x" * 2 * MIB


def test_an_arena_that_is_gone_leaves_no_descriptor() -> None:
    arena = Arena(MIB)
    descriptor = arena.descriptor

    del arena
    gc.collect()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_without_such_memory_there_is_no_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, flags: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", refuse)

    assert open_arena() is None


def real(arena: Arena) -> int:
    """Bytes of memory that it takes."""
    return os.fstat(arena.descriptor).st_blocks * 512
