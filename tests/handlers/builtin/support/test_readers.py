"""Processes read the images of a batch; what they cannot read, or no longer, is left to the worker."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsctl.handlers.builtin.support.readers import SLOTS, Pin, Readers, shares
from tsctl.handlers.sdk.errors import UnreadablePayload

Start = Callable[..., Readers]


def pinned(memory: torch.Tensor) -> bool:
    return True


def not_pinned(memory: torch.Tensor) -> bool:
    return False


@pytest.fixture
def start() -> Iterator[Start]:
    before, started = torch.get_num_threads(), []

    def begin(
        threads: int = 1, rows: int = 8, read: Callable[..., torch.Tensor] = first_byte, pin: Pin = not_pinned
    ) -> Readers:
        torch.set_num_threads(threads)
        started.append(Readers(read, threads, (1,), rows, pin))
        return started[-1]

    yield begin
    torch.set_num_threads(before)
    for each in started:
        each.close()


def first_byte(encoded: bytes, least_side: int | None) -> torch.Tensor:
    """Take a file for its first byte; some are told apart by it."""
    if encoded == b"bad":
        raise UnreadablePayload("it is bad")
    if encoded == b"worse":
        raise ValueError("unexpected")
    if encoded == b"wide":
        return torch.zeros(2, dtype=torch.uint8)
    if encoded == b"who":
        return torch.tensor([os.getpid() % 256], dtype=torch.uint8)
    if encoded == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.tensor([least_side or encoded[0]], dtype=torch.uint8)


def told(readers: Readers, *files: bytes, least_side: int | None = None) -> list[object]:
    """Return for each row its pixel, the reason why it is unreadable, or None."""
    made = readers.read(files, least_side)
    return [each.item() if isinstance(each, torch.Tensor) else each and str(each) for each in made]


@given(st.integers(0, 100), st.integers(0, 20))
def test_each_row_is_in_one_share_and_none_is_empty(rows: int, readers: int) -> None:
    got = shares(rows, readers)

    assert [row for start, end in got for row in range(start, end)] == list(range(rows if readers else 0))
    assert all(start < end for start, end in got)
    assert len(got) == min(rows, readers)


@pytest.mark.parametrize("pin", [pinned, not_pinned])
@pytest.mark.parametrize("threads", [1, 2, 9])
@pytest.mark.parametrize("rows", [8, 3])
def test_rows_come_back_in_their_order(start: Start, threads: int, rows: int, pin: Pin) -> None:
    readers = start(threads, rows, pin=pin)  # with less room, in parts

    assert told(readers, *(bytes([number]) for number in range(8))) == list(range(8))
    assert (told(readers), told(readers, b"a", least_side=7), told(readers, b"a")) == ([], [7], [ord("a")])


@pytest.mark.parametrize("pin", [pinned, not_pinned])
def test_what_was_read_stays_as_long_as_it_is_held(start: Start, pin: Pin) -> None:
    readers = start(pin=pin)
    files = [bytes([number, number]) for number in range(SLOTS + 3)]  # more than there are slots

    held = [readers.read([file], None)[0] for file in files]

    assert [row.item() for row in held if isinstance(row, torch.Tensor)] == [*range(SLOTS + 3)]


def memory_of(readers: Readers, file: bytes = b"a") -> tuple[int, list[Any]]:
    """Read a batch of one; return where its pixels are, and the batch."""
    rows: list[Any] = readers.read([file], None)
    return rows[0].data_ptr(), rows


def test_a_slot_is_used_again_once_nothing_holds_its_rows(start: Start) -> None:
    readers = start(pin=pinned)
    first, rows = memory_of(readers)
    view = rows[0].view(-1)
    del rows
    other, rows = memory_of(readers)
    assert other != first, "a view is left"

    del view, rows

    assert memory_of(readers)[0] == first


def test_memory_is_pinned_once_it_can_be(start: Start) -> None:
    asked: list[int] = []

    def second(memory: torch.Tensor) -> bool:
        asked.append(memory.nbytes)
        return len(asked) == 2

    readers = start(rows=3, pin=second)
    for _ in range(4):
        readers.read([b"a"], None)

    assert asked == [3 * (1 + SLOTS)] * 2


def test_rows_side_by_side_are_one_memory_that_can_be_copied_at_once(start: Start) -> None:
    rows = start().read([b"a", b"b"], None)

    assert all(isinstance(row, torch.Tensor) for row in rows)
    assert rows[0].untyped_storage().data_ptr() == rows[1].untyped_storage().data_ptr()  # type: ignore[union-attr]


@pytest.mark.parametrize(("file", "outcome"), [(b"bad", "it is bad"), (b"worse", None), (b"wide", None)])
def test_a_row_that_fails_fails_alone(start: Start, file: bytes, outcome: str | None) -> None:
    assert told(start(2), b"a", file, b"c") == [ord("a"), outcome, ord("c")]


def test_as_many_read_as_there_are_threads_for(start: Start) -> None:
    readers = start(9)  # three, of four threads at most
    files = [b"who"] * 8

    assert len(set(told(readers, *files))) == 3
    torch.set_num_threads(5)
    assert len(set(told(readers, *files))) == 2


def test_the_share_of_one_that_dies_is_left_to_the_worker_and_the_others_go_on(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    readers = start(8)
    with caplog.at_level(logging.WARNING):
        assert told(readers, b"a", b"b", b"die", b"d") == [ord("a"), ord("b"), None, None]

    assert told(readers, b"a", b"b") == [ord("a"), ord("b")]
    assert told(readers, b"die") == [None]
    assert told(readers, b"a") == [None]
    assert [record.getMessage() for record in caplog.records] == [
        "a process that reads images has died; 1 are left, and the worker itself",
        "a process that reads images has died; 0 are left, and the worker itself",
    ]


def test_they_end_when_they_are_closed(start: Start) -> None:
    readers = start(8)
    pids = [reader.pid for reader in readers._readers]
    readers.close()

    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
