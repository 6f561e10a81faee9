"""The tensors that a version takes and returns: declared by its archive or its handler, or told by the model's file.

A file tells those of an ONNX session, and the names of TorchScript's inputs.
"""

from collections.abc import Sequence
from typing import Any

from tsctl.daemon.model_settings.declarations import DeclaredTensor
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared, Input

OUTPUT = "output"  # of typed and built-in handlers
OUTPUTS = (DeclaredTensor(OUTPUT, "BYTES", (1,)),)
ARRAYS = ("array", "tensor")  # kinds of arguments whose tensors are known only to the archive


def typed_inputs(declared: Declared) -> tuple[DeclaredTensor, ...]:
    """Return the arguments whose tensors are known: all but arrays of which the model's file tells nothing."""
    return tuple(
        DeclaredTensor(each.name, each.datatype, tuple(each.shape))
        if each.datatype
        else DeclaredTensor(each.name, "BYTES", (1,))
        for each in declared.inputs
        if each.datatype or each.kind not in ARRAYS
    )


def tensors_of(model: ModelVersion) -> tuple[Sequence[DeclaredTensor], Sequence[DeclaredTensor]]:
    """Return the known inputs and outputs of a version: its archive's, else its handler's, each where there are any."""
    inputs, outputs = model.settings.inputs, model.settings.outputs
    if model.declared is None:
        return inputs, outputs
    return inputs or typed_inputs(model.declared), outputs or file_outputs(model.declared) or OUTPUTS


def file_outputs(declared: Declared) -> tuple[DeclaredTensor, ...]:
    """Return the outputs that the model's file tells."""
    return tuple(DeclaredTensor(each.name, each.datatype, tuple(each.shape)) for each in declared.outputs)


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
