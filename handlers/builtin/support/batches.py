"""Batches for a model whose file takes only some: their sizes as the file says, and runs in parts that fit.

Both exporters fix the first dimension unless they are told otherwise: torch.onnx.export and torch.export.export.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tsctl.handlers.builtin.support.onnx import is_session
from tsctl.handlers.sdk.batches import ANY, FileBatches

_TOLD = "tsctl_batches"  # the attribute of a module that a file was loaded as
# A symbolic dimension begins at 2 where torch has set 0 and 1 aside as special; it takes them all the same.
_SPECIAL = 2


def batches_of(model: Any) -> FileBatches:
    """Return the batches that a loaded model takes; any, unless its file tells."""
    if is_session(model):
        inputs = model.get_inputs()
        first = inputs[0].shape[0] if inputs and inputs[0].shape else None
        return FileBatches(first, first) if type(first) is int and first > 0 else ANY
    told = getattr(model, _TOLD, ANY)
    return told if isinstance(told, FileBatches) else ANY


def module_of(program: torch.export.ExportedProgram) -> Any:
    """Return the module of an exported program, which remembers the batches that the program takes."""
    module = program.module()
    setattr(module, _TOLD, batches_of_program(program))
    return module


def batches_of_program(program: torch.export.ExportedProgram) -> FileBatches:
    """Return the batches that an exported program takes: those of its first input."""
    names = program.graph_signature.user_inputs
    node = next((node for node in program.graph.nodes if names and node.name == names[0]), None)
    value = None if node is None else node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not value.dim():
        return ANY
    rows = value.shape[0]
    if isinstance(rows, int):
        return FileBatches(rows, rows) if rows > 0 else ANY
    bounds = program.range_constraints.get(rows.node.expr)
    if bounds is None:
        return ANY
    least, most = _whole(bounds.lower), _whole(bounds.upper)
    return FileBatches(least if least > _SPECIAL else 1, most)


def run_within(takes: FileBatches, run: Callable[[torch.Tensor], Any], data: torch.Tensor) -> Any:
    """Run a model on a batch of any size, in as many parts as it takes.

    Args:
        data: shape (rows, …). The last row is repeated where a part has too few.

    Returns:
        The outputs of the rows: tensors with a first dimension of `rows`, in the lists, tuples or dicts of the model.
    """
    rows = len(data)
    if takes.least <= rows and (not takes.most or rows <= takes.most):
        return run(data)
    parts = []
    for part in data.split(takes.most or rows):
        missing = max(0, takes.least - len(part))
        padded = torch.cat([part, part[-1:].expand(missing, *part.shape[1:])]) if missing else part
        parts.append(_first(run(padded), len(part), len(padded)) if missing else run(padded))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _whole(bound: Any) -> int:
    """Return a bound as a number; 0 for none."""
    try:
        return int(bound)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return 0


def _first(output: Any, rows: int, of: int) -> Any:
    """Return the first rows of an output; what has no dimension of rows stays."""
    if isinstance(output, torch.Tensor):
        return output[:rows] if output.dim() and len(output) == of else output
    if isinstance(output, Mapping):
        return {name: _first(each, rows, of) for name, each in output.items()}
    if isinstance(output, (list, tuple)):
        return type(output)([_first(each, rows, of) for each in output])
    return output


def _joined(outputs: Sequence[Any]) -> Any:
    """Return the outputs of several parts as that of one run."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return torch.cat([*outputs]) if first.dim() else first
    if isinstance(first, Mapping):
        return {name: _joined([each[name] for each in outputs]) for name in first}
    if isinstance(first, (list, tuple)):
        return type(first)([_joined(each) for each in zip(*outputs, strict=True)])
    return first
