"""Tensors for handlers that take numbers as in JSON: as arrays or lists of what nested lists in JSON would hold."""

import json
from typing import Any

import msgspec
import numpy as np

from tsctl.handlers import wire
from tsctl.handlers.requests.rows import decode_rows
from tsctl.handlers.sdk.context import decodes
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.tensors.arrays import received

_REMEDY = "declare the model's `inputs` in its model-config.yaml, and its handler gets tensors"
_MOST_SIGNED = 2**63 - 1


def numbers_of(head: TensorHead, data: wire.Payload, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return a tensor as NumPy makes it of nested lists in JSON, which tell neither how wide the numbers are.

    Args:
        dtype: the type of values that is wanted. A tensor that has it stays as it is; None for none.

    Returns:
        A writable array, bool, int64 or float64 (uint64 of numbers that are all beyond int64), or of `dtype`. Without
        elements it is float64, and has no dimension behind the first 0, which lists would not tell.

    Raises:
        UnreadablePayload: the tensor holds texts.
    """
    array: np.ndarray[Any, Any] = received(head, data)
    if not array.size:
        return np.zeros(array.shape[: array.shape.index(0) + 1])
    if array.dtype.kind == "O":
        raise UnreadablePayload("expected numbers, got BYTES")
    if (dtype is not None and array.dtype == dtype) or array.dtype.kind == "b":
        return array.copy()
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype == np.uint64 and array.max() > _MOST_SIGNED:
        return np.array(array.tolist())
    return array.astype(np.int64)


def fields_of(row: wire.Row, heads: ElementHeads) -> dict[str, Any]:
    """Return a row as `decode_rows` does where the daemon writes its tensors as JSON.

    Raises:
        UnreadablePayload: JSON cannot hold an element.
    """
    decode = decodes()
    pairs = list(zip(row.params, heads.inputs, strict=True))
    if heads.document:
        ((name, _, head), _), *elements = pairs
        document = msgspec.json.decode(head)
        for described, (param, tensor) in zip(document["inputs"], elements, strict=True):
            assert tensor is not None
            described["data"] = _values(tensor, param[2]).reshape(-1).tolist()
        return {name: document if decode else bytearray(json.dumps(document).encode())}
    plain = [param for param, tensor in pairs if tensor is None]
    (fields,) = decode_rows([wire.Row(row.id, row.headers, plain)], decode=decode)
    for (name, _, data), tensor in pairs:
        if tensor is not None:
            lists = _values(tensor, data).tolist()
            fields[name] = lists if decode else bytearray(json.dumps(lists).encode())
    return fields


def _values(head: TensorHead, data: wire.Payload) -> Any:
    """Return a tensor whose elements JSON can hold; those of BYTES are texts."""
    array = received(head, data)
    if array.dtype.kind == "O":
        try:
            texts = [str(each, "utf-8") for each in array.reshape(-1)]
        except UnicodeDecodeError:
            raise UnreadablePayload(
                f"{head.name} has bytes that are not UTF-8, which JSON cannot hold: {_REMEDY}."
            ) from None
        array = np.empty(array.shape, object)
        array.reshape(-1)[:] = texts
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UnreadablePayload(
            f"{head.name} has elements that are NaN or infinite, which JSON cannot hold: {_REMEDY}."
        )
    return array
