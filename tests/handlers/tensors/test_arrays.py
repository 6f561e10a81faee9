"""A handler's row of an inference request: one array for each input."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tsctl.daemon.model_settings.declarations import DATATYPES
from tsctl.handlers.tensor_heads import InferHead, TensorHead
from tsctl.handlers.tensors.arrays import arrays_of
from tsctl.handlers.tensors.datatypes import DTYPES
from tsctl.handlers.tensors.views import Views

VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False], "BYTES": [b"a\xff", b""], "BF16": [1.5, -0.0], "FP16": [0.5, -2.0], "FP32": [1e-3, -2.5],
    "FP64": [0.1, 1e300],
    **{f"UINT{bits}": [0, 2**bits - 1] for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] for bits in (8, 16, 32, 64)},
}  # fmt: skip


def pack(datatype: str, values: Sequence[Any]) -> bytes:
    """Return elements as the protocol's bytes; those of BF16 are cut."""
    if datatype == "BYTES":
        return b"".join(len(each).to_bytes(4, "little") + each for each in values)
    if datatype == "BF16":
        return np.array(values, "<f4").view("<u2")[1::2].tobytes()
    return np.array(values, DTYPES[datatype]).tobytes()


def array(datatype: str, data: bytes | memoryview, shape: list[int]) -> Any:
    head = InferHead("", {}, [TensorHead("a", datatype, shape)], [], False)
    return arrays_of(head, [("a", "", data)], Views())["a"]


def test_the_names_are_the_daemons() -> None:
    assert set(DTYPES) == set(DATATYPES)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_is_an_array_of_its_kind(datatype: str) -> None:
    values = VALUES[datatype]

    made = array(datatype, memoryview(pack(datatype, values)), [1, 2])

    assert (made.shape, made.dtype) == ((1, 2), DTYPES[datatype])
    wanted = np.array(values, np.float32).tolist() if datatype == "FP32" else values
    assert made.reshape(-1).tolist() == wanted
    assert array(datatype, b"", [0, 3]).shape == (0, 3)


def test_an_array_is_the_received_bytes_and_nobody_writes_them() -> None:
    data = bytearray(pack("INT32", [1, 2]))

    made = array("INT32", memoryview(data), [2])
    data[:4] = struct.pack("<i", 9)

    scalar = array("INT32", pack("INT32", [7]), [])
    assert (scalar.shape, int(scalar)) == ((), 7)
    assert array("BOOL", b"\x00\x01\x02", [3]).tolist() == [False, True, True]
    assert made.tolist() == [9, 2]
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 1
