"""Whole numbers of JSON for a model that computes with fractions: `[1, 2]` as well as `[1.0, 2.0]`.

A model takes whole numbers as they are if it can: as numbers of tokens, for example. Where it raises for them, it gets
them in its own dtype, from then on at once.
"""

from typing import Any

import torch


def is_whole(data: Any) -> bool:
    """Return whether a value is a tensor of whole numbers or of truth values."""
    return isinstance(data, torch.Tensor) and not (data.is_floating_point() or data.is_complex())


def dtype_for(model: Any, data: Any, error: RuntimeError) -> torch.dtype | None:
    """Return the dtype to try instead after the model raised for `data`; None if the error is another one.

    The dtype is that of the model's first floating-point parameter or buffer, else torch's default.
    """
    if not is_whole(data) or isinstance(error, torch.OutOfMemoryError) or "CUDA" in str(error):
        return None
    if not isinstance(model, torch.nn.Module):
        return torch.get_default_dtype()
    values = (*model.parameters(), *model.buffers())
    return next((each.dtype for each in values if each.is_floating_point()), torch.get_default_dtype())
