"""Networks of which each has one thing that a rewriting could get wrong, and their inputs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.handlers.optimize.nets import settled
from tsctl.handlers.optimize.int8.model import Int8, refusal

UNFIT = refusal(nn.Identity(), torch.device("cpu"))
needs_integers = pytest.mark.skipif(bool(UNFIT), reason=UNFIT)


class Residual(nn.Module):
    """Blocks as a ResNet has them: the second changes the number of channels on both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 16, 3, bias=False), nn.BatchNorm2d(16)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first, self.second = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 1)
        self.down, self.third = nn.Conv2d(16, 32, 1, 2), nn.Conv2d(16, 32, 3, 2, 1)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> Any:
        x = self.pool(torch.relu(self.bn(self.stem(images))))
        x = functional.relu(self.second(functional.relu(self.first(x))) + x)
        x = (self.third(x) + self.down(x)).relu()
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class UsedAgain(nn.Module):
    """A tensor is added to, and used once more after that; another is added to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

    def forward(self, images: torch.Tensor) -> Any:
        x = self.first(images)
        y = self.second(x) + x
        z = self.third(y) + x
        return self.second(z + z) + images


class Broadcast(nn.Module):
    """The sum has another shape than the tensor that is added: that one cannot take the sum in its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3)

    def forward(self, images: torch.Tensor) -> Any:
        x = self.first(images)
        return self.second(x) + x.mean(dim=(2, 3), keepdim=True)


class Activations(nn.Module):
    """All activations that a layer takes in, and one that none does."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU6(), nn.Conv2d(8, 8, 3, groups=8), nn.SiLU(), nn.Conv2d(8, 8, 1), nn.Hardswish(),
            nn.Dropout(), nn.Conv2d(8, 8, 2, dilation=2), nn.Tanh(),
        )  # fmt: skip
        self.linear = nn.Sequential(
            nn.Flatten(), nn.Linear(8 * 9 * 9, 16), nn.GELU("tanh"), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)
        )

    def forward(self, images: torch.Tensor) -> Any:
        return self.linear(self.convolutions(images))


class Branching(nn.Module):
    """Code that torch.fx cannot trace, around modules that it can."""

    def __init__(self) -> None:
        super().__init__()
        self.body = Residual()
        self.last, self.never = nn.Linear(10, 6), nn.Linear(10, 6)

    def forward(self, images: torch.Tensor) -> Any:
        x = self.body(images)
        return self.last(x) if x.shape[0] < 100 and bool((x == x).all()) else self.never(x)


class Masked(nn.Module):
    """An argument with a default that decides about the code, as the models of transformers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = MaskedLayer(), nn.Linear(8, 4)

    def forward(self, numbers: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        return self.outer(self.inner(numbers, mask=torch.ones_like(numbers) if mask is None else mask))


class MaskedLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, numbers: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        return self.linear(numbers) if mask is None else self.linear(numbers * mask)


class Attending(nn.Module):
    """torch's own attention and encoder read the weights of the layers in them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, numbers: torch.Tensor) -> Any:
        attended, _ = self.attention(numbers, numbers, numbers)
        return self.head(self.encoder(attended))


class Twice(nn.Module):
    """A layer that runs twice, on different ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, numbers: torch.Tensor) -> Any:
        return self.linear(torch.relu(self.linear(numbers)) * 20)


def sequence(dimensions: int) -> Callable[[], nn.Module]:
    convolution = {1: nn.Conv1d, 3: nn.Conv3d}[dimensions]
    return lambda: nn.Sequential(convolution(3, 8, 3, padding=1), nn.ReLU(), convolution(8, 4, 3))


IMAGES, NUMBERS = (4, 3, 15, 15), (4, 6, 8)
# name → what makes the network, the shape of its input, and how many of its layers run on integers.
NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "a residual network": (Residual, IMAGES, 6),
    "a tensor that is used after it was added": (UsedAgain, IMAGES, 4),
    "a sum of different shapes": (Broadcast, IMAGES, 2),
    "activations": (Activations, IMAGES, 7),
    "code that branches on data": (Branching, IMAGES, 7),
    "an argument with a default": (Masked, NUMBERS, 2),
    "attention": (Attending, NUMBERS, 1),
    "a layer that runs twice": (Twice, NUMBERS, 2),
    "one-dimensional convolutions": (sequence(1), (4, 3, 20), 2),
    "three-dimensional convolutions": (sequence(3), (4, 3, 5, 6, 7), 2),
    "a layer alone": (lambda: nn.Linear(8, 3), NUMBERS, 1),
}


def made(build: Callable[[], nn.Module]) -> nn.Module:
    return settled(build())


def inputs_of(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def on_integers(model: nn.Module, inputs: torch.Tensor) -> tuple[Int8, int]:
    """Return the model on integers, calibrated with these inputs, and the number of its layers."""
    int8 = Int8(model)
    with torch.inference_mode():
        scales = int8.calibrate(lambda: int8(inputs))
        return int8, int8.convert(scales)
