"""The inputs that a model's file names: an ONNX session knows their names, types and shapes, TorchScript their names.

A row is a request's values, without the batch's dimension; one with it, of length 1, is taken, too.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tsctl.handlers.builtin.support.onnx import is_session
from tsctl.handlers.requests.gpu_context import is_machines
from tsctl.handlers.requests.gpu_copies import to_device
from tsctl.handlers.sdk.errors import UnreadablePayload


def is_whole(data: Any) -> bool:
    """Return whether a value is a tensor of whole numbers or of truth values."""
    return isinstance(data, torch.Tensor) and not (data.is_floating_point() or data.is_complex())


def dtype_for(model: Any, data: Any, error: RuntimeError) -> torch.dtype | None:
    """Return the dtype to try instead after the model raised for `data`; None if the error is another one.

    The dtype is that of the model's first floating-point parameter or buffer, else torch's default.
    """
    if not is_whole(data) or is_machines(error):
        return None
    if not isinstance(model, torch.nn.Module):
        return torch.get_default_dtype()
    values = (*model.parameters(), *model.buffers())
    return next((each.dtype for each in values if each.is_floating_point()), torch.get_default_dtype())


# ONNX's types → the protocol's, whose names NumPy has in lower case but for these.
_DATATYPES = {
    "tensor(float)": "FP32", "tensor(double)": "FP64", "tensor(float16)": "FP16", "tensor(bool)": "BOOL",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_DTYPES = {"FP32": np.float32, "FP64": np.float64, "FP16": np.float16, "BOOL": np.bool_}
_NAMES = ("data", "body")


class ModelTensor(NamedTuple):
    """One input or output.

    Attributes:
        datatype: as the Open Inference Protocol names it; empty if the file does not tell.
        shape: of one row, -1 for any length; None if the file does not tell.
    """

    name: str
    datatype: str = ""
    shape: tuple[int, ...] | None = None

    @property
    def text(self) -> str:
        return f"`{self.name}`" + (f" ({self.datatype} of shape {list(self.shape or ())})" if self.datatype else "")


def inputs_of(model: Any) -> list[ModelTensor]:
    """Return the inputs of a loaded model; none for one whose file does not tell them, or takes other than numbers."""
    if is_session(model):
        inputs = [tensor_of_session(each) for each in model.get_inputs()]
        return [each for each in inputs if each is not None] if None not in inputs else []
    if not isinstance(model, torch.jit.ScriptModule):
        return []
    try:
        arguments = model.forward.schema.arguments[1:]  # type: ignore[attr-defined]  # torch's stubs lack it
    except (AttributeError, RuntimeError):
        return []
    required = [each for each in arguments if not each.has_default_value()]
    if len(required) < 2 or any(str(each.type) != "Tensor" for each in required):
        return []  # one input is what every handler takes
    return [ModelTensor(each.name) for each in required]


def tensor_of_session(each: Any) -> ModelTensor | None:
    """Return an input or output of a session as of one row; None if it has no rows, or other elements than numbers."""
    datatype, shape = _DATATYPES.get(each.type), each.shape
    if datatype is None or not shape:
        return None
    return ModelTensor(each.name, datatype, tuple(size if type(size) is int else -1 for size in shape[1:]))


def arrays_of(row: Any, inputs: Sequence[ModelTensor]) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of a row, one for each input.

    Raises:
        UnreadablePayload: a value is missing, or is no array of the input's type and shape.
    """
    return [_array(each, _value(each, row, inputs)) for each in inputs]


def tensors_of(rows: Sequence[Any], inputs: Sequence[ModelTensor], device: torch.device) -> list[torch.Tensor]:
    """Return a batch: for each input a tensor of shape (rows, …)."""
    columns = zip(*(arrays_of(row, inputs) for row in rows), strict=True)
    return to_device([torch.from_numpy(np.stack(column)) for column in columns], device)


def _value(wanted: ModelTensor, row: Any, inputs: Sequence[ModelTensor]) -> Any:
    """Return the value of an input: the part of its name, or the member of the body; of one input, the body itself."""
    if not isinstance(row, Mapping):
        return row
    if wanted.name in row:
        return row[wanted.name]
    body = next((row[name] for name in _NAMES if row.get(name) is not None), None)
    if isinstance(body, Mapping):
        if wanted.name in body:
            return body[wanted.name]
        body = next((body[name] for name in _NAMES if name in body), None)
    if len(inputs) == 1 and body is not None:
        return body
    has = ", ".join(f"`{str(name)[:100]}`" for name in list(row)[:10]) or "nothing"
    takes = ", ".join(each.text for each in inputs)
    raise UnreadablePayload(
        f"The request has {has}, and the model takes {takes}: send a JSON object, or a form, with these names"
    )


def _array(wanted: ModelTensor, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (bytes, bytearray, memoryview)):  # a part of a form
        try:
            value = json.loads(bytes(value))
        except (ValueError, RecursionError):
            value = ""
    if isinstance(value, str):
        raise UnreadablePayload(f"`{wanted.name}`: expected a list of numbers in JSON")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnreadablePayload(f"`{wanted.name}`: not an array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise UnreadablePayload(f"`{wanted.name}`: not an array of numbers")
    if wanted.shape is not None:
        array = _shaped(wanted, wanted.shape, array)
    if not wanted.datatype:
        return array.astype(np.float32) if array.dtype == np.float64 else array
    made = array.astype(_DTYPES.get(wanted.datatype, wanted.datatype.lower()))
    if made.dtype.kind in "biu" and not np.array_equal(made, array):
        raise UnreadablePayload(f"`{wanted.name}`: expected {wanted.datatype}, got {array.dtype} that does not fit")
    return made


def _shaped(wanted: ModelTensor, shape: tuple[int, ...], array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.ndim == len(shape) + 1 and len(array) == 1:
        array = array[0]
    fits = array.ndim == len(shape) and all(size in (-1, own) for size, own in zip(shape, array.shape, strict=True))
    if not fits:
        raise UnreadablePayload(f"`{wanted.name}`: expected shape {list(shape)}, got {list(array.shape)}")
    return array
