"""How far two outputs are apart."""

import math
from collections import OrderedDict
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.trees import map_tensors

NAN = math.nan


@pytest.mark.parametrize(
    ("plain", "other", "expected"),
    [
        pytest.param(torch.tensor([1.0, -4.0]), torch.tensor([1.0, -4.0]), 0.0, id="equal"),
        pytest.param(torch.tensor([1.0, -4.0]), torch.tensor([1.5, -4.0]), 0.125, id="by the largest value"),
        pytest.param(torch.tensor([1.0]), torch.tensor([NAN]), math.inf, id="a number that is lost"),
        pytest.param(torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]), 0.0, id="one that never was"),
        pytest.param(torch.zeros(2), torch.zeros(2), 0.0, id="nothing, and nothing"),
        pytest.param(torch.zeros(2), torch.ones(2), math.inf, id="something instead of nothing"),
        pytest.param(torch.ones(2), torch.ones(1, 2), math.inf, id="another shape"),
        pytest.param(torch.ones(0), torch.ones(0), 0.0, id="no values"),
        pytest.param(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 3, 5]), 0.25, id="whole numbers: the share"),
        pytest.param(torch.tensor([8.0]).bfloat16(), torch.tensor([9.0]), 0.125, id="of two types"),
        pytest.param({"a": torch.ones(1), "b": torch.ones(1)}, {"a": torch.ones(1)}, math.inf, id="a missing member"),
        pytest.param(
            OrderedDict(out=torch.tensor([2.0])), {"out": torch.tensor([3.0])}, 0.5, id="members by their names"
        ),
        pytest.param([(torch.ones(1),), torch.ones(1)], [(torch.ones(1),), torch.zeros(1)], 1.0, id="the worst counts"),
        pytest.param(["a", None], ["a", None], 0.0, id="other things are equal"),
        pytest.param(["a"], ["b"], math.inf, id="or not"),
    ],
)
def test_drift(plain: Any, other: Any, expected: float) -> None:
    plain, other = (map_tensors(each, lambda tensor: tensor.to(DEVICE)) for each in (plain, other))

    assert drift(plain, other) == expected
