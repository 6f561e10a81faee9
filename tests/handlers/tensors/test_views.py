"""Memory of a request that a handler still uses after its batch is named until it no longer does."""

import mmap
from typing import Any

import numpy as np
import pytest
import torch

from tsctl.handlers import wire
from tsctl.handlers.tensor_heads import InferHead, TensorHead
from tsctl.handlers.tensors.arrays import arrays_of
from tsctl.handlers.tensors.views import Views

ARENA = memoryview(mmap.mmap(-1, 4096))
HEAD = InferHead("", {}, [TensorHead("a", "UINT8", [2, 4])], [], False)


def batch(*offsets: int) -> wire.Predict:
    """A batch with a row for each value in the arena, 8 bytes each, and one value in the frame."""
    rows = [wire.Row(str(each), [], [("a", "", ARENA[each : each + 8])], HEAD) for each in offsets]
    stored = [wire.Stored(row, 0, offset, 8) for row, offset in enumerate(offsets)]
    return wire.Predict(1, [*rows, wire.Row("f", [], [("a", "", memoryview(bytes(8)))], HEAD)], stored)


def arrays(views: Views, of: wire.Predict) -> list[Any]:
    return [arrays_of(HEAD, row.params, views)["a"] for row in of.rows]


def test_what_nobody_uses_is_free() -> None:
    views, done = Views(), batch(0, 64)
    in_the_frame = arrays(views, done)[-1]

    assert views.end_batch(done) == [] and in_the_frame.shape == (2, 4)
    assert views.end_batch(batch()) == []


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda array: array, id="the array"),
        pytest.param(lambda array: array[1:, 2], id="a slice"),
        pytest.param(torch.from_numpy, id="a tensor"),
        pytest.param(lambda array: torch.from_numpy(array)[0].view(-1), id="a slice of a tensor"),
        pytest.param(memoryview, id="a memoryview"),
        pytest.param(lambda array: np.asarray(memoryview(array)), id="an array of a memoryview"),
        pytest.param(lambda array: np.frombuffer(array, np.uint8), id="an array of an array"),
    ],
)
def test_what_shares_the_memory_keeps_it_until_it_is_gone(use: Any) -> None:
    views, done = Views(), batch(0, 64)
    kept = use(arrays(views, done)[1])

    assert views.end_batch(done) == [64]
    assert views.end_batch(batch(128)) == [64]
    del kept
    assert views.end_batch(batch(128)) == []


@pytest.mark.parametrize("use", [np.copy, torch.tensor, np.ndarray.tolist, lambda array: array.astype("f4")])
def test_a_copy_keeps_nothing(use: Any) -> None:
    views, done = Views(), batch(0)
    kept = use(arrays(views, done)[0])

    assert views.end_batch(done) == []
    assert len(kept) == 2


def test_a_batch_that_ends_leaves_the_others_arrays() -> None:
    views, first, second = Views(), batch(0), batch(64)
    kept = arrays(views, first), arrays(views, second)

    assert views.end_batch(first) == [0]
    assert views.end_batch(second) == [0, 64]
    del kept
    assert views.end_batch(batch()) == []
