"""The datatypes of the Open Inference Protocol in NumPy.

BF16, which NumPy lacks, is FP32 for a handler; BYTES are objects. tests/handlers/tensors compares these names with the
daemon's, which validates the declarations.
"""

from typing import Any

import numpy as np

BF16, BYTES = "BF16", "BYTES"
DTYPES: dict[str, Any] = {
    "BOOL": np.dtype("?"), "UINT8": np.dtype("u1"), "UINT16": np.dtype("<u2"), "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"), "INT8": np.dtype("i1"), "INT16": np.dtype("<i2"), "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"), "FP16": np.dtype("<f2"), "FP32": np.dtype("<f4"), "FP64": np.dtype("<f8"),
    BF16: np.dtype("<f4"), BYTES: np.dtype("O"),
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items() if name not in (BF16, BYTES)}


def datatype_of(array: Any) -> str | None:
    """Return the datatype of an array; None if the protocol has none for it."""
    if array.dtype.kind in "USO":
        return BYTES
    return NAMES.get(array.dtype.newbyteorder("<"))
