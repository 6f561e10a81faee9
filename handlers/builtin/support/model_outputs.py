"""The outputs of a model: an item for each row, with the names that an ONNX session or the answer itself gives them.

one tensor                         the numbers of the row
several, of a session              an object by their names
a dict, or a named tuple           an object by its keys or fields
any other tuple, or a list         a list with the row's part of each
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tsctl.handlers.builtin.support.model_inputs import ModelTensor, tensor_of_session
from tsctl.handlers.builtin.support.onnx import is_session
from tsctl.handlers.sdk.errors import InvalidResult


def outputs_of(model: Any) -> list[ModelTensor]:
    """Return the outputs of an ONNX session; none of any other model, or where one has other than numbers."""
    if not is_session(model):
        return []
    outputs = [tensor_of_session(each) for each in model.get_outputs()]
    return [each for each in outputs if each is not None] if None not in outputs else []


def logits_of(output: Any, shape: str, member: str = "") -> torch.Tensor:
    """Return a classifier's logits.

    Args:
        output: the model's.
        shape: what is expected, a name for each dimension: `rows, classes`.
        member: of the output, where that is to be a mapping.

    Raises:
        InvalidResult: the output is another one, for every request: the message is for the model's author.
    """
    value = output
    if member:
        value = output.get(member) if isinstance(output, Mapping) else None
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() == len(shape.split(",")):
        return value
    has, of = type(output).__name__, f" in a dict, as `{member}`" if member else ""
    if isinstance(output, torch.Tensor):
        has = f"a tensor of {str(output.dtype).removeprefix('torch.')} of shape {list(output.shape)}"
    raise InvalidResult(f"The model returns {has}; its handler expects logits, floats of shape ({shape}){of}")


def items_of_outputs(output: Any, names: Sequence[str] = ()) -> list[Any]:
    """Return the item of each row.

    Args:
        output: a tensor of shape (rows, …), or several in a mapping, list or tuple.
        names: of several, where the model's file tells them.

    Raises:
        InvalidResult: an output is no tensor, or their first dimensions differ.
    """
    if isinstance(output, torch.Tensor):
        if not output.dim():
            raise InvalidResult("The model's output is a single value; expected a tensor with a row for each request")
        items: list[Any] = output.tolist()
        return items
    parts, keys = _parts_of(output, names)
    if not parts:
        raise InvalidResult(f"The model returns {type(output).__name__}; expected tensors with a row for each request")
    columns = [items_of_outputs(each) for each in parts]
    if len({len(column) for column in columns}) > 1:
        told = ", ".join(f"{len(column)} of `{key}`" for key, column in zip(keys or range(1, 9), columns, strict=False))
        raise InvalidResult(f"The model's outputs have different numbers of rows: {told}")
    rows = zip(*columns, strict=True)
    return [dict(zip(keys, row, strict=True)) for row in rows] if keys else [list(row) for row in rows]


def _parts_of(output: Any, names: Sequence[str]) -> tuple[Sequence[Any], Sequence[str]]:
    """Return the outputs, and their names, if they have any."""
    if isinstance(output, Mapping):
        given = {str(key): each for key, each in output.items() if each is not None}  # as of Hugging Face's outputs
        return list(given.values()), list(given)
    if not isinstance(output, (list, tuple)):
        return (), ()
    return output, getattr(output, "_fields", names if len(names) == len(output) else ())
