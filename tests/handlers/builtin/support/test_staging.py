"""Rows that lie side by side are taken as one tensor, without a copy."""

import pytest
import torch

from tsctl.handlers.builtin.support.staging import side_by_side

BATCH = torch.arange(24, dtype=torch.uint8).view(4, 2, 3)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 3)])
def test_rows_that_follow_one_another_are_one_tensor_of_the_same_memory(start: int, end: int) -> None:
    whole = side_by_side([BATCH[row] for row in range(start, end)])

    assert whole is not None
    assert torch.equal(whole, BATCH[start:end])
    assert whole.data_ptr() == BATCH[start].data_ptr()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([BATCH[0], BATCH[2]], id="one between is missing"),
        pytest.param([BATCH[1], BATCH[0]], id="another order"),
        pytest.param([BATCH[0], BATCH[0]], id="the same twice"),
        pytest.param([BATCH[0], BATCH[1].clone()], id="another memory"),
        pytest.param([BATCH[0].T, BATCH[1].T], id="another order in memory"),
        pytest.param([BATCH[0], BATCH[1].view(3, 2)], id="another shape"),
    ],
)
def test_other_rows_are_not(rows: list[torch.Tensor]) -> None:
    assert side_by_side(rows) is None
