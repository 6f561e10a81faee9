"""How often two outputs choose the same class."""

from typing import Any

import pytest
import torch

from tsctl.handlers.optimize.checks.drift import agreement

ROWS = torch.tensor([[0.0, 1.0, 2.0], [5.0, 0.0, 0.0], [0.0, 9.0, 0.0], [1.0, 0.0, 0.0]])
OTHER = torch.tensor([[0.0, 1.0, 3.0], [4.0, 0.0, 0.0], [9.0, 0.0, 0.0], [1.1, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("plain", "other", "expected"),
    [
        pytest.param([ROWS], [ROWS * 2 + 1], 1.0, id="only the order counts"),
        pytest.param([ROWS], [OTHER], 0.75, id="one row in four"),
        pytest.param([ROWS, ROWS], [OTHER, ROWS], 0.875, id="over all outputs"),
        pytest.param([{"out": ROWS}], [{"out": OTHER}], 0.75, id="in a mapping"),
        pytest.param([ROWS.T[None]], [OTHER.T[None]], 1 / 3, id="three dimensions: classes are the last"),
        pytest.param([ROWS.T[None, :, None]], [OTHER.T[None, :, None]], 0.75, id="four: the second, for each pixel"),
        pytest.param([ROWS[:, :1]], [OTHER[:, :1]], None, id="a single number is no choice"),
        pytest.param([ROWS.long()], [OTHER.long()], None, id="nor are whole numbers"),
        pytest.param([ROWS], [{"a": OTHER, "b": OTHER}], None, id="another structure"),
    ],
)
def test_agreement(plain: list[Any], other: list[Any], expected: float | None) -> None:
    assert agreement(plain, other) == expected
