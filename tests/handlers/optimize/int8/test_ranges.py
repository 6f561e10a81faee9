"""The range in which values are written."""

import pytest
import torch

from tsctl.handlers.optimize.int8.calibration import MOST_VALUES, Observer, scale_of
from tsctl.handlers.optimize.int8.layers import Scale


def observed(*tensors: torch.Tensor) -> Observer:
    observer = Observer()
    for tensor in tensors:
        assert observer(tensor) is tensor
    return observer


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        pytest.param(0.0, 25.5, Scale(0.1, 0), id="after a ReLU zero is the lowest"),
        pytest.param(-25.5, 0.0, Scale(0.1, 255), id="or the highest"),
        pytest.param(-10.0, 15.5, Scale(0.1, 100), id="zero is always a step"),
    ],
)
def test_scale_of(low: float, high: float, expected: Scale) -> None:
    scale = scale_of(low, high)

    assert scale.scale == pytest.approx(expected.scale)
    assert scale.zero == expected.zero


def test_evenly_spread_values_have_their_full_range() -> None:
    scale = observed(torch.linspace(-1, 3, 1000), torch.linspace(-2, 4, 1000)).scale()

    assert scale is not None
    assert scale.scale == pytest.approx(6 / 255)


def test_a_few_far_values_are_cut_off_for_finer_steps_of_the_others() -> None:
    near = [torch.linspace(-1, 1, 4000) for _ in range(15)]

    scale = observed(*near, torch.tensor([1.5])).scale()

    assert scale is not None
    assert scale.scale < 0.95 * 2.5 / 255


def test_many_runs_keep_few_values() -> None:
    observer = observed(*(torch.linspace(-1, 1, 100_000) for _ in range(100)))

    assert sum(map(len, observer._values)) <= MOST_VALUES
    scale = observer.scale()
    assert scale is not None
    assert scale.scale == pytest.approx(2 / 255)


def test_the_range_reaches_to_zero_even_if_no_value_does() -> None:
    scale = observed(torch.linspace(5, 6, 100)).scale()

    assert scale is not None
    assert scale.zero == 0


@pytest.mark.parametrize(
    "tensors",
    [
        pytest.param([], id="none was seen"),
        pytest.param([torch.zeros(3)], id="only zeros"),
        pytest.param([torch.ones(3), torch.tensor([float("nan")])], id="not a number"),
        pytest.param([torch.ones(3), torch.ones(3, dtype=torch.int64)], id="whole numbers"),
        pytest.param([torch.ones(3), torch.ones(3, dtype=torch.float64)], id="of another type"),
        pytest.param([torch.ones(0)], id="empty"),
    ],
)
def test_other_values_have_no_scale(tensors: list[torch.Tensor]) -> None:
    assert observed(*tensors).scale() is None
