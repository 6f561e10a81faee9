"""Typed: the shape of each tensor, and its dtype."""

import torch


def predict(xs: list[torch.Tensor]) -> list[str]:
    return [f"{x.dtype} {list(x.shape)}" for x in xs]
