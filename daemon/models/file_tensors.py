"""The tensors that a model's file tells: those of an ONNX session, the names of TorchScript's inputs."""

from collections.abc import Sequence
from typing import Any

from tsctl.handlers.wire import Declared, Input


def file_tensors(declared: Declared | None) -> dict[str, Any] | None:
    """Return the inputs and outputs of one row as JSON; None if the file tells none.

    Args:
        declared: by the worker. A built-in handler's own declaration has one input, of which no type is known.
    """
    if declared is None or not declared.built_in or any(each.kind != "array" for each in declared.inputs):
        return None
    if len(declared.inputs) == 1 and not declared.inputs[0].datatype:
        return None
    return {"inputs": _documents(declared.inputs), "outputs": _documents(declared.outputs)}


def _documents(tensors: Sequence[Input]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "datatype": each.datatype or None, "shape": each.shape if each.datatype else None}
        for each in tensors
    ]
