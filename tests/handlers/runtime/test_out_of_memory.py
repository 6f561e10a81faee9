"""Memory does not suffice for a batch: how that is known; what follows is in `conversations/isolation.txt`."""

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.requests.out_of_memory import is_out_of_memory
from tsctl.handlers.runtime import runtime as runtimes
from tsctl.handlers.runtime.runtime import Allowance, Runtime, no_pieces
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
    """A handler with room for so many rows together."""

    def __init__(self, most: int) -> None:
        self.most = most

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        if len(data) > self.most:
            raise torch.OutOfMemoryError(OUT)
        return [""] * len(data)


def test_halves_run_although_the_time_for_single_rows_is_used_up() -> None:
    runtime = Runtime(EntryPoint(None, Room(4).handle), context_of(Path("/")), True)
    runtime._allowance = Allowance(float("inf"), saved=0.0)

    answers = runtime.run([row(letter.encode()) for letter in "abcdefgh"])

    assert {answer.status for answer in answers} == {200}


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
