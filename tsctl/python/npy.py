"""Arrays in answers: `.npy` files, read without pickle."""

import io
import math
from typing import Any

import numpy as np

from tsctl.python.errors import UnreadableAnswer


def read_npy(body: bytes) -> Any:
    """Read an `.npy` file; its header is checked against the number of bytes before any memory is allocated.

    Raises:
        UnreadableAnswer: the header is broken or does not fit the bytes, or the values are objects.
    """
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # noqa: BLE001 - the header is a Python literal, which fails in many ways
        raise UnreadableAnswer(f"the answer says it is an `.npy` file, and is not: {error}") from None
    expected, there = math.prod(shape) * dtype.itemsize, len(body) - file.tell()
    if dtype.hasobject or expected != there:
        raise UnreadableAnswer(
            f"the `.npy` header of the answer says {shape} of {dtype}, {expected} bytes, and {there} bytes follow"
        )
    return np.frombuffer(bytearray(body[file.tell() :]), dtype).reshape(shape, order="F" if fortran else "C")
