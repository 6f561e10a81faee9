"""The tensors of an inference request as arrays: views of the received bytes, which nobody may write."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tsctl.handlers import wire
from tsctl.handlers.tensor_heads import InferHead, TensorHead
from tsctl.handlers.tensors.datatypes import BF16, BYTES, DTYPES
from tsctl.handlers.tensors.views import Views

_LENGTH = struct.Struct("<I")  # before each element of BYTES


def arrays_of(infer: InferHead, params: Sequence[tuple[str, str, wire.Payload]], views: Views) -> dict[str, Any]:
    """Return name → array; the daemon has checked that the bytes fit datatype and shape.

    Arrays are read-only: their memory is the request's. Those of BOOL, BF16 (float32) and BYTES (objects) are copies.
    """
    pairs = zip(infer.inputs, params, strict=True)
    return {each.name: _array(each.datatype, each.shape, value, views) for each, (_, _, value) in pairs}


def received(head: TensorHead, data: wire.Payload) -> Any:
    """Return one tensor as `arrays_of` does, to be copied before the batch ends."""
    return _array(head.datatype, head.shape, data, None)


def _array(datatype: str, shape: Sequence[int], data: wire.Payload, views: Views | None) -> Any:
    if datatype == BYTES:
        array = np.empty(shape, dtype=object)
        array.reshape(-1)[:] = _elements(data)
    elif not len(data):
        array = np.empty(shape, DTYPES[datatype])
    elif datatype == "BOOL":  # any byte but 0 is true: NumPy takes 0 and 1 only
        array = (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    elif datatype == BF16:
        array = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    else:
        whole = np.frombuffer(data, DTYPES[datatype])
        if views is not None:
            views.watch(data, whole)
        array = whole.reshape(shape)
    array.flags.writeable = False
    return array


def _elements(data: wire.Payload) -> list[bytes]:
    elements, at = [], 0
    while at < len(data):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(data, at)[0]
        elements.append(bytes(data[start:at]))
    return elements
