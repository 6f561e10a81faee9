"""Memory does not suffice for a batch: its halves run instead, and the daemon is told how many rows were too many."""

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.runtime import runtime as runtimes
from tsctl.handlers.runtime.failures import Allowance
from tsctl.handlers.runtime.out_of_memory import is_out_of_memory
from tsctl.handlers.runtime.runtime import Runtime, SendPieces, no_pieces
from tsctl.handlers.runtime.steps import ActiveRow, ActiveRows, SteppedRuntime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint

OUT = "CUDA out of memory. Tried to allocate 400.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which …"


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError(OUT),
        torch.AcceleratorError("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in …"),
        RuntimeError(OUT),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: …"),
        MemoryError(),
    ],
    ids=repr,
)
def test_these_errors_say_that_memory_does_not_suffice(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("out of memory"), KeyError("memory")])
def test_others_do_not(error: Exception) -> None:
    assert not is_out_of_memory(error)


class Room:
    """A handler with room for so many rows together; a row `huge` fits with none, not even alone."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: list[int] = []

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        self.sizes.append(len(data))
        texts = [bytes(each["body"]).decode() for each in data]
        if len(data) > self.most or "huge" in texts:
            raise torch.OutOfMemoryError(OUT)
        if "bad" in texts:
            raise ValueError("not that one")
        return [text.upper() for text in texts]


def run(
    room: Room, *texts: str, isolate: bool | None = True, send: SendPieces = no_pieces
) -> tuple[Runtime, list[tuple[int, str]]]:
    runtime = Runtime(EntryPoint(None, room.handle), context_of(Path("/")), isolate)
    rows = [row(text.encode(), request_id=f"r{number}") for number, text in enumerate(texts)]
    return runtime, [(each.status, bytes(each.body).decode()) for each in runtime.run(rows, send)]


LETTERS = "abcdefgh"


@pytest.mark.parametrize(
    ("most", "sizes", "too_large"),
    [
        pytest.param(8, [8], 0, id="all fit"),
        pytest.param(4, [8, 4, 4], 8, id="halves fit"),
        pytest.param(3, [8, 4, 2, 2, 4, 2, 2], 4, id="quarters do"),
        pytest.param(1, [8, *[4, 2, 1, 1, 2, 1, 1] * 2], 2, id="each alone does"),
    ],
)
def test_as_many_run_together_as_fit_and_each_is_answered(most: int, sizes: list[int], too_large: int) -> None:
    room = Room(most)

    runtime, answers = run(room, *LETTERS)

    assert answers == [(200, letter.upper()) for letter in LETTERS]
    assert (room.sizes, runtime.too_large) == (sizes, too_large)


def test_of_an_odd_number_the_first_half_is_the_larger() -> None:
    room = Room(3)

    run(room, *"abcde")

    assert room.sizes == [5, 3, 2]


def test_a_row_that_does_not_fit_alone_is_answered_507_and_says_nothing_of_the_others() -> None:
    room = Room(8)

    runtime, answers = run(room, *"abc", "huge", *"efgh")

    assert [status for status, _ in answers] == [200] * 3 + [507] + [200] * 4
    assert answers[3][1].startswith("Out of resources. OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert room.sizes == [8, 4, 2, 2, 1, 1, 4], "the others run in the largest parts without it"
    assert runtime.too_large == 0, "batches of eight may fit"


def test_what_does_not_fit_beside_such_a_row_is_still_told() -> None:
    runtime, _ = run(Room(2), *"abc", "huge", *"efgh")

    assert runtime.too_large == 4


def test_a_row_that_fails_otherwise_in_its_half_runs_alone() -> None:
    room = Room(4)

    runtime, answers = run(room, *"abc", "bad", *"efgh")

    assert [status for status, _ in answers] == [200] * 3 + [503] + [200] * 4
    assert (room.sizes, runtime.too_large) == ([8, 4, 1, 1, 1, 1, 4], 8)
    assert runtime.isolation is not None and runtime.isolation.failed == 1


def test_the_next_batch_begins_with_a_clean_record() -> None:
    runtime, _ = run(Room(4), *LETTERS)

    runtime.run([row(b"a")])

    assert (runtime.too_large, runtime.isolation) == (0, None)


def test_halves_run_although_the_time_for_single_rows_is_used_up() -> None:
    room = Room(4)
    runtime = Runtime(EntryPoint(None, room.handle), context_of(Path("/")), True)
    runtime._allowance = Allowance(float("inf"), saved=0.0)

    answers = runtime.run([row(letter.encode()) for letter in LETTERS])

    assert {answer.status for answer in answers} == {200}


def test_a_handle_of_the_users_own_runs_once_and_the_daemon_is_told() -> None:
    room = Room(4)

    runtime, answers = run(room, *LETTERS, isolate=None)

    assert {status for status, _ in answers} == {507}
    assert (room.sizes, runtime.too_large) == ([8], 8)


def test_a_row_that_came_alone_is_no_sign_for_batches() -> None:
    runtime, [(status, _)] = run(Room(0), "a")

    assert (status, runtime.too_large) == (507, 0)


def test_the_daemon_hears_before_each_half_that_the_batch_goes_on() -> None:
    sent: list[Sequence[Any]] = []

    run(Room(4), *LETTERS, send=sent.append)

    assert sent == [[], []]


def test_there_is_room_again_when_a_half_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed call's tensors are free when the cache is emptied; what circles hold, the second time."""

    class Activations:
        circle: Any = None

    seen: list[weakref.ref[Activations]] = []
    told: list[tuple[bool, int]] = []

    def make_room(*, collect: bool = False) -> None:
        told.append((collect, sum(each() is not None for each in seen)))

    monkeypatch.setattr(runtimes, "make_room", make_room)

    def handle(data: list[Any], context: Context) -> list[Any]:
        here = Activations()
        seen.append(weakref.ref(here))
        if len(data) > 2:
            raise torch.OutOfMemoryError(OUT)
        return [""] * len(data)

    gc.disable()
    try:
        Runtime(EntryPoint(None, handle), context_of(Path("/")), True).run([row(b"")] * 8)
    finally:
        gc.enable()

    assert told == [(False, 0), (True, 0), (True, 0)]


def test_rows_that_run_continuously_are_told_as_they_ran() -> None:
    runtime = SteppedRuntime(EntryPoint(None, Room(2).handle), context_of(Path("/")))

    def step(*texts: str) -> list[int]:
        rows = [ActiveRow(wire.Predict(number, [row(text.encode())])) for number, text in enumerate(texts)]
        stepped = runtime.step(ActiveRows(rows), [], no_pieces)
        return [each[0].status for each in stepped if not isinstance(each, bytes)]

    assert (step("a", "b", "c"), runtime.too_large) == ([507] * 3, 3)
    assert (step("a", "b"), runtime.too_large) == ([200] * 2, 0)
