"""Places in shared memory: never two in one place, all free in the end, and real memory only where it is needed."""

import gc
import mmap
import os
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.core.arena import (
    COPIED_AT_ONCE,
    GIVEN_AT_ONCE,
    KEPT,
    SHARED_FROM,
    Arena,
    Gathered,
    Lease,
    Payload,
    Take,
    gather,
    open_arena,
    share_steps,
)
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.places import PAGE, Allocator, Places, pages

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


def shared(value: bytes, take: Take | None) -> tuple[int, Payload]:
    """Return after how many turns a value was copied, and where it is."""
    steps, turns = share_steps(value, take), 0
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return turns, ended.value
        turns += 1


def test_a_large_value_is_copied_into_the_arena_in_slices() -> None:
    arena = Arena(8 * MIB)
    value = random.Random(1).randbytes(2 * COPIED_AT_ONCE + 1)

    turns, stored = shared(value, arena.take)

    assert turns == 2
    assert isinstance(stored, Lease)
    assert bytes(stored) == value
    assert isinstance(shared(bytes(SHARED_FROM), arena.take)[1], Lease)


def test_a_value_stays_where_it_is_if_it_is_small_or_there_is_no_place() -> None:
    arena = Arena(8 * MIB)

    for value, take in ((b"x" * (SHARED_FROM - 1), arena.take), (bytes(9 * MIB), arena.take), (bytes(MIB), None)):
        assert shared(value, take) == (0, value)


class Cycle:
    """Garbage that only the collector finds, with a lease in it."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.itself = self


@pytest.mark.parametrize("threshold", [5, 7, 11, 23])
def test_a_collection_in_the_middle_of_a_call_gives_no_place_to_two(threshold: int) -> None:
    arena, chance, kept = Arena(MIB), random.Random(threshold), list[Lease]()
    before = gc.get_threshold()
    gc.set_threshold(threshold)
    try:
        for _ in range(3000):
            stored = arena.take(chance.randrange(1, 5 * PAGE))
            if stored is None:
                kept.clear()
                continue
            end = stored.offset + len(stored)
            assert not [other for other in kept if stored.offset < other.offset + len(other) and other.offset < end]
            if chance.random() < 0.5:
                kept.append(stored)
            else:
                Cycle(stored)
            if len(kept) > 20:
                del kept[chance.randrange(20)]
    finally:
        gc.set_threshold(*before)
    del stored
    kept.clear()
    gc.collect()

    assert arena.used == 0


class Slow(Allocator):
    """An allocator that is interrupted when it frees for the first time."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.inside, self.go_on = threading.Event(), threading.Event()

    def free(self, offset: int, length: int) -> None:
        if not self.inside.is_set():
            self.inside.set()
            assert self.go_on.wait(60)
        super().free(offset, length)


def test_places_that_are_freed_while_another_thread_frees_one_are_free_in_the_end() -> None:
    places = Places(8 * PAGE)
    slow = places._allocator = Slow(8 * PAGE)
    assert [places.take(PAGE), places.take(PAGE)] == [0, PAGE]
    other = threading.Thread(target=places.free, args=(0, PAGE))
    other.start()
    assert slow.inside.wait(60)

    places.free(PAGE, PAGE)
    assert places.take(PAGE) is None, "who frees a place is not waited for"
    slow.go_on.set()
    other.join()

    assert places.used == 0
    assert places.take(8 * PAGE) == 0


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


def test_one_piece_goes_back_in_a_turn_of_the_loop_however_many_places_are_free() -> None:
    clock = FakeClock()
    arena = Arena(4 * KEPT)
    arena.soon = clock.soon
    places = [arena.take(KEPT), arena.take(KEPT), arena.take(KEPT)]

    del places
    steps = 0
    while clock.step():
        steps += 1

    assert steps == 2 * KEPT // GIVEN_AT_ONCE and arena.used == 0


def test_a_body_of_many_pieces_is_gathered_in_the_arena_if_it_is_large() -> None:
    arena = Arena(MIB)
    large = gather(bytearray(b"x" * SHARED_FROM), arena)

    assert isinstance(large, Lease) and bytes(large) == b"x" * SHARED_FROM
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


class Announced:
    """A body that is arriving: it gives up all but a page."""

    def __init__(self, arena: Arena, length: int) -> None:
        self.stored = arena.take(length, self)
        self.asked = 0

    def give_up_place(self) -> None:
        assert self.stored is not None
        self.asked += 1
        self.stored.cut(1)


def test_who_only_arrives_gives_up_what_has_not_come_the_first_first() -> None:
    arena = Arena(8 * PAGE)
    first, second = Announced(arena, 4 * PAGE), Announced(arena, 4 * PAGE)

    taken = arena.take(3 * PAGE)

    assert taken is not None and (first.asked, second.asked) == (1, 0)
    assert first.stored is not None and len(first.stored) == 1
    assert arena.take(4 * PAGE) is None  # the second gave up three, and no one is asked twice
    assert (first.asked, second.asked) == (1, 1)
    assert arena.used == 5 * PAGE


@pytest.mark.parametrize(
    "most", [0, SHARED_FROM - 1, SHARED_FROM, 2 * SHARED_FROM, 3 * SHARED_FROM + 5, 10 * SHARED_FROM]
)
@pytest.mark.parametrize("pieces", [0, 1, 3])
def test_pieces_are_gathered_in_order_wherever_there_is_room(most: int, pieces: int) -> None:
    arena = Arena(8 * SHARED_FROM)
    content = [bytes([number]) * SHARED_FROM for number in range(pieces)]
    gathered = Gathered(arena.take, most)
    for piece in content:
        gathered.add_piece(piece)

    body = gathered.payload()
    del gathered

    whole = b"".join(content)
    assert bytes(body) == whole and len(body) == len(whole)
    there = SHARED_FROM <= most <= arena.size and 0 < len(whole) <= most
    assert isinstance(body, Lease) == there
    assert arena.used == (pages(len(whole)) if there else 0)


def test_pieces_are_joined_where_there_is_no_arena() -> None:
    gathered = Gathered(None, SHARED_FROM)
    gathered.add_piece(b"a")
    gathered.add_piece(b"b")

    assert gathered.payload() == b"ab"
