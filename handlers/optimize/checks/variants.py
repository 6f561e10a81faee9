"""More inputs from few: a sample as it is, and changed as another photograph of the same might be.

A quantised model that is broken fails on these, too. They say little about inputs that the samples do not resemble.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from tsctl.handlers.optimize.trees import map_tensors

ENOUGH = 32  # inputs; with as many samples, none is changed
GAINS = (1.0, 0.8, 1.2, 0.9)
NOISE = 0.1  # of the standard deviation


def varied(samples: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """Yield the input of each sample, then their variants, up to `ENOUGH` inputs in all.

    Args:
        samples: each makes an input for the model: a tensor, or mappings and sequences of tensors.
    """
    for number in range(max(1, -(-ENOUGH // len(samples)))):
        for make in samples[: ENOUGH - number * len(samples)] if number else samples:
            yield map_tensors(make(), partial(variant, number))


def variant(number: int, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's variant: brighter or darker, with noise, and an image mirrored; 0 is the tensor itself.

    Whole numbers have no variants.
    """
    if number == 0 or not tensor.is_floating_point() or not tensor.numel():
        return tensor
    changed = tensor * GAINS[number % len(GAINS)]
    if tensor.dim() >= 4 and number // len(GAINS) % 2:
        changed = changed.flip(-1)
    noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(number))
    return changed + noise.to(tensor) * (tensor.std(correction=0) * NOISE)
