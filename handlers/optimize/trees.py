"""Map over the tensors within an input or output of any structure."""

import copy
from collections.abc import Callable
from typing import Any

import torch


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return the same structure of dicts, lists and tuples with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (dict, list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        changed = {key: map_tensors(each, change) for key, each in items}
        return changed if isinstance(value, dict) else list(changed.values())
    if isinstance(value, tuple):
        parts = [map_tensors(each, change) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):  # an OrderedDict, or an output class of transformers: of the same class again
        made = copy.copy(value)
        for key in value:
            made[key] = map_tensors(value[key], change)
        return made
    return value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors within, in order."""
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, note)
    return found
