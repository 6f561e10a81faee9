"""Convolutions and linear layers on 8-bit integers, and the operations between them.

Values are plain tensors of uint8: value = (integer - zero) × scale, one scale and zero for a whole tensor. Weights are
int8 with one scale for each output channel and no zero. Products are summed in 32 bits. A layer's sum with another
tensor, its activation and the rounding to uint8 are done in the same pass.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

LEVELS = 255  # of uint8, without the first
WEIGHT_LEVELS = 127  # of int8 on either side of 0
CONVOLUTIONS = {nn.Conv1d: "qconv1d_pointwise", nn.Conv2d: "qconv2d_pointwise", nn.Conv3d: "qconv3d_pointwise"}


# The operators' arguments as they are passed below. They are no documented interface, and may change with torch.
INPUTS = "qx x_scale x_zero_point qw w_scale w_zero_point"
OUTPUTS = "output_scale output_zero_point output_dtype"
OPERATORS = {
    "qconv2d_pointwise.default": f"{INPUTS} bias stride padding dilation groups {OUTPUTS} attr scalars algorithm",
    "qconv2d_pointwise.binary": f"{INPUTS} qaccum bias stride padding dilation groups {OUTPUTS} accum_scale"
    " accum_zero_point binary_attr alpha unary_attr unary_scalars unary_algorithm",
    "qlinear_pointwise.default": f"{INPUTS} bias {OUTPUTS} post_op_name post_op_args post_op_algorithm",
}


def has_operators() -> bool:
    """Return whether this torch has the operators that layers call, with these arguments."""
    try:
        return all(
            " ".join(each.name for each in attrgetter(name)(torch.ops.onednn)._schema.arguments) == arguments
            for name, arguments in OPERATORS.items()
        )
    except AttributeError:  # a torch without oneDNN
        return False


class Scale(NamedTuple):
    """How a tensor is written in uint8; `zero` is the integer for 0.0."""

    scale: float
    zero: int


FLOAT = Scale(1.0, 0)  # as the operators want it for tensors of float32


class Activation(NamedTuple):
    """An activation by the operators' name, its constants, and its variant."""

    name: str = "none"
    constants: tuple[float, ...] = ()
    variant: str = ""


NONE = Activation()


def quantise(values: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """Round float32 of any shape to uint8; values out of range become the nearest that is not."""
    scaled = values.mul(1 / scale).add_(zero + 0.5)  # conversion cuts off: + 0.5 makes that rounding
    return scaled.clamp_(0, LEVELS).to(torch.uint8)


def dequantise(integers: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """Convert uint8 of any shape to float32."""
    return integers.to(torch.float32).sub_(zero).mul_(scale)


def max_pool2d(
    images: torch.Tensor, size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> torch.Tensor:
    """Return the maximum of each window of uint8, shape (N, C, H, W).

    torch's own takes no uint8. In float32, 8 × 64 × 112 × 112 on two threads: 8 ms with torch's, and 0.9 ms so.
    """
    (rows, columns), (down, right) = padding, stride
    padded = functional.pad(images, (columns, columns, rows, rows))  # 0 is no larger than anything
    height, width = ((padded.shape[axis + 2] - size[axis]) // stride[axis] + 1 for axis in (0, 1))
    best = padded[:, :, : (height - 1) * down + 1 : down]
    for row in range(1, size[0]):
        best = torch.maximum(best, padded[:, :, row : row + (height - 1) * down + 1 : down])
    across = best[..., : (width - 1) * right + 1 : right]
    for column in range(1, size[1]):
        across = torch.maximum(across, best[..., column : column + (width - 1) * right + 1 : right])
    return across.contiguous(memory_format=torch.channels_last)


def round_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight of shape (outputs, …) in int8, and float32 scales of shape (outputs,)."""
    flat = weight.detach().to(torch.float32).flatten(1)
    scales = flat.abs().amax(1).clamp_(min=1e-12) / WEIGHT_LEVELS
    rounded = (flat / scales[:, None]).round_().clamp_(-WEIGHT_LEVELS, WEIGHT_LEVELS)
    return rounded.to(torch.int8).view(weight.shape), scales


class Int8Layer(nn.Module):
    """A layer whose weight is packed for oneDNN.

    Args:
        layer: a convolution or a linear layer in float32; not kept.
        source: how the input is written.
        shape: of an input. The weight is packed for images of this size: those of another are slower by far, as it is
            packed anew for each batch (ResNet-152 at 12 images/s instead of 35).
        target: how the output is to be written; None for float32.
        activation: applied to the layer's output.
        other: how the tensor is written that is added before the activation, if one is: as the output is, uint8 or
            float32.
    """

    def __init__(
        self,
        layer: Any,
        source: Scale,
        shape: Sequence[int],
        target: Scale | None = None,
        activation: Activation = NONE,
        other: Scale | None = None,
    ) -> None:
        super().__init__()
        weight, self._scales = round_weight(layer.weight)
        self._zeros = torch.zeros(len(weight), dtype=torch.int64)
        self._bias = None if layer.bias is None else layer.bias.detach()
        self._source, self._activation, self._other = source, activation, other or FLOAT
        self._target = (*(target or FLOAT), torch.float32 if target is None else torch.uint8)
        self._geometry: tuple[Any, ...] = ()
        if isinstance(layer, nn.Linear):
            self._weight = torch.ops.onednn.qlinear_prepack(weight, None)
            self._operator = torch.ops.onednn.qlinear_pointwise
        else:
            self._geometry = ([*layer.stride], [*layer.padding], [*layer.dilation], layer.groups)
            self._weight = torch.ops.onednn.qconv_prepack(weight, self._scales, *source, *self._geometry, [*shape])
            name = next(name for kind, name in CONVOLUTIONS.items() if isinstance(layer, kind))
            self._operator = getattr(torch.ops.onednn, name)

    def forward(self, values: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        """Run the layer; `other` may be overwritten."""
        if values.dim() == 4 and self._geometry:
            values = values.contiguous(memory_format=torch.channels_last)
        name, constants, variant = self._activation
        inputs = (values, *self._source, self._weight, self._scales, self._zeros)
        made: torch.Tensor
        if other is None:
            made = self._operator.default(
                *inputs, self._bias, *self._geometry, *self._target, name, [*constants], variant
            )  # fmt: skip
            return made
        added = other.contiguous(memory_format=torch.channels_last)
        made = self._operator.binary(
            *inputs, added, self._bias, *self._geometry, *self._target, *self._other, "sum", 1.0,
            None if name == "none" else name, [*constants], variant,
        )  # fmt: skip
        return made
