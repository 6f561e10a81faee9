"""Layers of classes that are derived from torch's are folded and converted where they compute the same, else left."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.handlers.device import DEVICE, ROUNDING
from tests.handlers.optimize.int8.nets import needs_integers
from tests.handlers.optimize.nets import settled
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.folding import count_normalisations, fold
from tsctl.handlers.optimize.int8.model import Int8
from tsctl.handlers.optimize.own_layers import SplitNormalisation, base_of


class NamedConv(nn.Conv2d):
    """Has a constructor of its own, as many libraries' layers have."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, bias=False)


class PaddedConv(nn.Conv2d):
    """Pads as TensorFlow does, as timm's Conv2dSame."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - the name is torch's
        return functional.conv2d(functional.pad(input, (0, 1, 0, 1)), self.weight, self.bias, self.stride)


class StandardisedConv(nn.Conv2d):
    """Changes its weights before it uses them, so that none can be taken in."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        return functional.conv2d(input, weight, self.bias)


class BatchNormAct(nn.BatchNorm2d):
    """As timm's BatchNormAct2d: torch's code, an assertion on the input, and what follows a normalisation there."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.act = nn.ReLU()

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        torch._assert(input.ndim == 4, f"expected 4D input (got {input.ndim}D)")
        training = self.training or (self.running_mean is None and self.running_var is None)
        x = functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, training, 0.1, self.eps
        )
        result: torch.Tensor = self.act(x)
        return result


class BatchNormSkip(nn.BatchNorm2d):
    """Uses its input a second time."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        return super().forward(input) + input


class NamedNorm(nn.BatchNorm2d):
    pass


def parametrized() -> nn.Module:
    made: nn.Module = parametrizations.weight_norm(nn.Conv2d(3, 6, 3))
    return made


@pytest.mark.parametrize(
    ("convolution", "normalisation", "folded"),
    [
        pytest.param(lambda: NamedConv(3, 6), NamedNorm, 1, id="the same code"),
        pytest.param(lambda: nn.Conv2d(3, 6, 3), BatchNormAct, 1, id="a normalisation with an activation"),
        pytest.param(lambda: PaddedConv(3, 6, 3), BatchNormAct, 1, id="a convolution with a padding of its own"),
        pytest.param(lambda: StandardisedConv(3, 6, 3), nn.BatchNorm2d, 0, id="a convolution that changes its weights"),
        pytest.param(lambda: nn.Conv2d(3, 6, 3), BatchNormSkip, 0, id="a normalisation that adds its input"),
        pytest.param(parametrized, nn.BatchNorm2d, 0, id="a parametrized weight"),
    ],
)
def test_what_computes_the_same_is_folded(
    convolution: Callable[[], nn.Module], normalisation: Callable[[int], nn.Module], folded: int
) -> None:
    model = settled(nn.Sequential(convolution(), normalisation(6))).to(DEVICE)
    before = copy.deepcopy(model)
    images = torch.randn(2, 3, 9, 9, device=DEVICE)

    assert (count_normalisations(model), fold(model)) == (1, folded)

    assert drift(before(images), model(images)) <= ROUNDING
    assert any(isinstance(each, SplitNormalisation) for each in model.modules()) == (
        bool(folded) and normalisation is BatchNormAct
    )


def test_the_members_of_a_split_normalisation_are_its_own() -> None:
    model = nn.Sequential(nn.Conv2d(3, 6, 3), BatchNormAct(6))

    fold(settled(model))

    found: Any = model[1]
    assert isinstance(found.act, nn.ReLU) and found.num_features == 6


def test_a_normalisation_of_another_place_is_put_back() -> None:
    model = nn.Sequential(BatchNormAct(3), nn.Conv2d(3, 6, 3))

    assert fold(settled(model)) == 0 and type(model[0]) is BatchNormAct


@pytest.mark.parametrize(
    ("module", "base"),
    [
        (nn.Linear(1, 1), nn.Linear),
        (NamedConv(3, 6), nn.Conv2d),
        (PaddedConv(3, 6, 3), None),
        (nn.ReLU(), None),
        (parametrized(), None),
    ],
)
def test_which_of_torchs_classes_a_module_counts_as(module: nn.Module, base: type | None) -> None:
    assert base_of(module) is base


@needs_integers
def test_layers_with_torchs_code_run_on_integers_and_the_others_are_counted() -> None:
    network = nn.Sequential(NamedConv(3, 6), NamedNorm(6), nn.ReLU(), StandardisedConv(6, 6, 3))
    model = Int8(settled(network)).eval()
    images = torch.randn(2, 3, 9, 9)
    scales = model.calibrate(lambda: model(images))

    assert (model.count(), model.convert(scales)) == (2, 1)
