"""The arithmetic of uint8, and the layers on it."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.handlers.optimize.int8.nets import needs_integers
from tsctl.handlers.optimize.int8.layers import (
    Activation,
    Int8Layer,
    Scale,
    dequantise,
    max_pool2d,
    quantise,
    round_weight,
)  # fmt: skip


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(4))


def test_values_are_rounded_to_the_nearest_step_and_cut_off_at_the_ends() -> None:
    values = torch.tensor([-9.0, -1.0, -0.3, -0.2, 0.0, 0.2, 0.3, 1.0, 126.0, 999.0])

    written = quantise(values, 0.5, 3)

    assert written.tolist() == [0, 1, 2, 3, 3, 3, 4, 5, 255, 255]
    assert dequantise(written, 0.5, 3).tolist() == [-1.5, -1.0, -0.5, 0.0, 0.0, 0.0, 0.5, 1.0, 126.0, 126.0]


@pytest.mark.parametrize(
    ("size", "stride", "padding"),
    [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (1, 0)), ((1, 1), (2, 2), (0, 0))],
)
def test_the_pool_of_integers_is_torchs_own(
    size: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> None:
    images = integers(2, 5, 13, 12)

    pooled = max_pool2d(images, size, stride, padding)

    assert torch.equal(pooled.float(), functional.max_pool2d(images.float(), size, stride, padding))


def test_each_output_channel_of_a_weight_has_its_own_steps() -> None:
    weight = torch.tensor([[127.0, -1.0], [0.127, 0.001], [0.0, 0.0]])

    rounded, scales = round_weight(weight)

    assert rounded.tolist() == [[127, -1], [127, 1], [0, 0]]
    assert scales.tolist() == pytest.approx([1.0, 0.001, 0.0], abs=1e-9)


@needs_integers
@pytest.mark.parametrize("target", [None, Scale(0.03, 90)])
def test_a_layer_adds_applies_the_activation_and_rounds_in_one_pass(target: Scale | None) -> None:
    convolution = nn.Conv2d(4, 8, 3, padding=1)
    source, other_scale = Scale(0.05, 100), Scale(0.02, 60)
    inputs, added = integers(2, 4, 9, 9), integers(2, 8, 9, 9)
    floats = dequantise(added, *other_scale)
    with torch.no_grad():
        rounded, scales = round_weight(convolution.weight)
        convolution.weight.copy_(rounded * scales.view(-1, 1, 1, 1))
        expected = torch.relu(convolution(dequantise(inputs, *source)) + floats)

    layer = Int8Layer(convolution, source, inputs.shape, target, Activation("relu"), target and other_scale)
    output = layer(inputs, floats if target is None else added)

    if target is None:
        assert output.dtype == torch.float32
        torch.testing.assert_close(output, expected)
    else:
        assert output.dtype == torch.uint8
        assert (output.int() - quantise(expected, *target).int()).abs().max() <= 1
