"""The distance between two outputs of a model."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tsctl.handlers.optimize.trees import tensors_of


def agreement(plain: Sequence[Any], other: Sequence[Any]) -> float | None:
    """Return the fraction of choices that are the same.

    Args:
        plain: outputs of the plain model: tensors of shape (N, classes), one choice a row; (N, classes, H, W), one a
            pixel; or (N, T, classes), one a token; or mappings and sequences of them.
        other: the other model's, of the same structure and shapes.

    Returns:
        None if no output has classes.
    """
    ours, theirs = _choices(plain), _choices(other)
    if not ours or len(ours) != len(theirs):
        return None
    same = torch.cat([(mine == its).reshape(-1) for mine, its in zip(ours, theirs, strict=True)])
    return same.double().mean().item()


def _choices(outputs: Sequence[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for tensor in tensors_of(list(outputs)):
        axis = -1 if tensor.dim() == 3 else 1
        if tensor.dim() >= 2 and tensor.is_floating_point() and tensor.shape[axis] > 1 and tensor.numel():
            found.append(tensor.argmax(axis))
    return found


# The largest drift with which an optimisation is kept, unless `optimizeTolerance` says otherwise. fold, channels_last,
# compile, onnxruntime and graph only change the order of sums: ResNets drift by 1e-7 to 1e-6 in float32; on a GPU whose
# convolutions use TF32, with a mantissa of 10 bits, by 1e-3. bf16 has 8 bits: ResNet-18 and ResNet-152 drift by 5e-3 to
# 1e-2.
# fast_images is in the pixels' units, one step of 255, and so is scaled_decode: eight steps.
TOLERANCES = {
    "fast_images": 1.001 / 255,
    "scaled_decode": 8 / 255,
    "fold": 1e-3,
    "channels_last": 1e-3,
    "bf16": 5e-2,
    "int8": 5e-2,
    "compile": 1e-3,
    "onnxruntime": 1e-3,
    "graph": 1e-3,
}
# Where answers are classes, the largest fraction of inputs whose best class may be another, for what is not exact: it
# decides in place of the drift, but for the pixels of scaled_decode, which have to be within both.
CLASSES_LOST = {"scaled_decode": 1e-2, "bf16": 1e-2, "int8": 5e-2}
TF32_TOLERANCE = 1e-2


def drift(plain: Any, other: Any) -> float:
    """Compare a model's output with the plain model's.

    Args:
        plain: tensors of any shape and dtype, or mappings and sequences of them.
        other: the same structure.

    Returns:
        The largest, over all tensors, of max |plain - other| ÷ max |plain|. Infinity if their structures, shapes or
        non-finite positions differ. For integers and booleans, the fraction of values that differ.
    """
    ours, theirs = list(_leaves(plain)), list(_leaves(other))
    if len(ours) != len(theirs):
        return math.inf
    return max((_leaf_drift(*pair) for pair in zip(ours, theirs, strict=True)), default=0.0)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value, key=str) for leaf in (str(key), *_leaves(value[key]))]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _leaf_drift(plain: Any, other: Any) -> float:
    if not isinstance(plain, torch.Tensor) or not isinstance(other, torch.Tensor):
        return 0.0 if type(plain) is type(other) and plain == other else math.inf
    if plain.shape != other.shape:
        return math.inf
    if not plain.numel():
        return 0.0
    if not plain.is_floating_point() and not plain.is_complex():
        return (plain != other).double().mean().item()
    good = plain.isfinite()
    if not torch.equal(good, other.isfinite()):
        return math.inf
    if not good.any():
        return 0.0
    apart = (plain[good].double() - other[good].double()).abs().max().item()
    scale = plain[good].double().abs().max().item()
    return apart / scale if scale else (math.inf if apart else 0.0)
