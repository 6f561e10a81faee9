"""Normalisations go into convolutions where that changes nothing, and only there."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.device import DEVICE, ROUNDING
from tests.handlers.optimize.nets import settled
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.folding import fold


class Branching(nn.Module):
    """Looks at its input, so that it cannot be traced; its parts can."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.mean() > 0:
            images = -images
        result: torch.Tensor = self.body(images)
        return result


class Peeking(nn.Module):
    """Uses a convolution's output twice: before and after its normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.conv(images)
        result: torch.Tensor = x + self.bn(x)
        return result


class Twice(nn.Module):
    """Calls one normalisation after two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.bn = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.bn(self.one(images)) + self.bn(self.two(images))
        return result


def pair(convolution: nn.Module, channels: int = 6, **options: Any) -> nn.Module:
    return nn.Sequential(convolution, nn.BatchNorm2d(channels, **options))


@pytest.mark.parametrize(
    ("model", "folded"),
    [
        pytest.param(pair(nn.Conv2d(3, 6, 3)), 1, id="a convolution"),
        pytest.param(pair(nn.Conv2d(3, 6, 3, bias=False)), 1, id="without a bias"),
        pytest.param(pair(nn.Conv2d(3, 6, 1, groups=3)), 1, id="depthwise"),
        pytest.param(pair(nn.Conv2d(3, 6, 3), affine=False), 1, id="a normalisation without weights"),
        pytest.param(pair(nn.ConvTranspose2d(3, 6, 2, stride=2)), 1, id="transposed"),
        pytest.param(pair(nn.ConvTranspose2d(3, 6, 2, groups=3)), 1, id="transposed, in groups"),
        pytest.param(pair(nn.ConvTranspose2d(3, 6, 2, groups=3, bias=False), affine=False), 1, id="and bare"),
        pytest.param(pair(pair(nn.Conv2d(3, 6, 3))), 1, id="two normalisations, of which it takes one"),
        pytest.param(Branching(), 1, id="within a model that cannot be traced"),
        pytest.param(Peeking(), 0, id="not where the output is used before, too"),
        pytest.param(Twice(), 0, id="nor where the normalisation has two callers"),
        pytest.param(pair(nn.Conv2d(3, 6, 3), track_running_stats=False), 0, id="nor where it looks at the batch"),
        pytest.param(nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 6, 3)), 0, id="nor where it comes first"),
    ],
)
def test_folding_changes_no_answer(model: nn.Module, folded: int) -> None:
    model = settled(copy.deepcopy(model)).to(DEVICE)
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    with torch.no_grad():
        before = model(images)
        many = fold(model)
        after = model(images)

    assert many == folded
    assert sum(isinstance(module, nn.Identity) for module in model.modules()) == folded
    assert drift(before, after) < ROUNDING


def test_a_convolution_that_somebody_listens_to_is_left_alone() -> None:
    model = settled(pair(nn.Conv2d(3, 6, 3)))
    assert isinstance(model, nn.Sequential)
    model[0].register_forward_hook(lambda *_: None)

    assert fold(model) == 0


def test_a_normalisation_in_training_is_left_alone() -> None:
    assert fold(settled(pair(nn.Conv2d(3, 6, 3))).train()) == 0
