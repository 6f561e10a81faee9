"""How often two models choose the same class."""

from collections.abc import Sequence
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
