"""Arrays in requests: `.npy` files and JSON lists.

An `.npy` file is read without pickle, and its header is checked against the number of bytes before any memory is
taken: a file of 100 bytes may declare 2^60 values.
"""

import io
import math
from typing import Any

import msgspec
import numpy as np

from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import TensorHead
from tsctl.handlers.tensors.numbers import numbers_of

MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # characters; NumPy's own limit
_NUMBERS = "biufc"  # the kinds of dtypes that are numbers


def array_of(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Decode an array.

    Args:
        value: an `.npy` file or JSON text as bytes, or nested lists.
        dtype: the type of the result's values; None for the file's, or NumPy's default for lists.

    Returns:
        A writable array in native byte order.

    Raises:
        UnreadablePayload: the value is not an array of numbers, or holds values that `dtype` cannot.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        if bytes(value[: len(MAGIC)]) == MAGIC:
            return _cast(read_npy(value), dtype)
        try:
            value = msgspec.json.decode(value)
        except (ValueError, RecursionError) as error:
            raise UnreadablePayload(f"neither an `.npy` file nor a JSON list: {error}") from None
    if not isinstance(value, (list, int, float)):
        raise UnreadablePayload(f"expected a list of numbers, got {type(value).__name__}")
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnreadablePayload(f"not an array of numbers: {error}") from None
    if array.dtype.kind not in _NUMBERS:
        raise UnreadablePayload("not an array of numbers")
    return _cast(array, dtype)


def read_npy(body: bytes | bytearray | memoryview) -> np.ndarray[Any, Any]:
    """Read an `.npy` file of numbers.

    Raises:
        UnreadablePayload: the header is broken, the values are not numbers, or their number does not fit the file.
    """
    file = io.BytesIO(bytes(body[: _LONGEST_HEADER + 100]))
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} is not read")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:  # noqa: BLE001 - the header is a Python literal: SyntaxError, RecursionError, MemoryError and more
        raise UnreadablePayload(f"broken `.npy` header: {str(error).strip().partition(chr(10))[0][:200]}") from None
    if dtype.kind not in _NUMBERS:
        raise UnreadablePayload(f"the `.npy` file holds values of type {str(dtype)[:100]}; only numbers are read")
    there = len(body) - file.tell()
    expected = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or expected != there:
        text = str(shape)[:200]
        raise UnreadablePayload(f"the `.npy` header says {text} of {dtype}, {expected} bytes, and {there} bytes follow")
    try:
        flat = np.frombuffer(bytearray(body[file.tell() :]), dtype)
        array = flat.reshape(shape, order="F" if fortran else "C")
    except (TypeError, ValueError, OverflowError) as error:  # a length may be `True`
        raise UnreadablePayload(f"the `.npy` header says {str(shape)[:200]}: {error}") from None
    return array.astype(dtype.newbyteorder("="), copy=False)


def tensor_of(value: Any) -> Any:
    """Decode a tensor, as `array_of` does; the fractions of a JSON list become torch's default dtype.

    Raises:
        UnreadablePayload: the value is not an array of numbers, or of a type that torch lacks, or holds a number beyond
            torch's default dtype.
    """
    array = array_of(value)
    is_file = isinstance(value, (bytes, bytearray, memoryview)) and bytes(value[: len(MAGIC)]) == MAGIC
    tensor = _in_torch(array)
    return tensor if is_file else _as_fractions(tensor)


def array_of_elements(head: TensorHead, data: bytes | memoryview, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Decode a tensor of an inference request, as `array_of` does nested lists of its elements.

    Raises:
        UnreadablePayload: the tensor holds texts, or values that `dtype` cannot.
    """
    return _cast(numbers_of(head, data, dtype), dtype)


def tensor_of_elements(head: TensorHead, data: bytes | memoryview) -> Any:
    """Decode a tensor of an inference request, as `tensor_of` does nested lists of its elements.

    Raises:
        UnreadablePayload: the tensor holds texts.
    """
    return _as_fractions(_in_torch(numbers_of(head, data, np.float32)))


def _as_fractions(tensor: Any) -> Any:
    """Return a tensor whose fractions, if it has any, are of torch's default dtype."""
    import torch

    default = torch.get_default_dtype()
    if not tensor.is_floating_point() or tensor.dtype == default:
        return tensor
    usual = tensor.to(default)
    if not usual.isfinite().all() and (beyond := tensor[usual.isinf() & tensor.isfinite()]).numel():
        raise UnreadablePayload(f"{beyond[0].item()} is beyond {str(default).removeprefix('torch.')}")
    return usual


def _in_torch(array: np.ndarray[Any, Any]) -> Any:
    import torch

    try:
        return torch.from_numpy(np.ascontiguousarray(array) if array.ndim else array)
    except TypeError as error:
        raise UnreadablePayload(f"not an array for torch: {error}") from None


def _fits(array: np.ndarray[Any, Any], dtype: Any) -> bool:
    return np.can_cast(array.dtype, dtype, "same_kind") or not array.size  # an empty list tells no type


def _cast(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    if dtype is None or array.dtype == dtype:
        return array
    try:
        fits = _fits(array, dtype)
    except TypeError:  # an abstract type, such as np.floating: the array's own, or the usual one of that kind
        usual = (array.dtype, np.dtype(np.float64), np.dtype(np.int64))
        found = next((each for each in usual if np.issubdtype(each, dtype) and _fits(array, each)), None)
        if found is None:
            raise UnreadablePayload(f"expected values of type {dtype.__name__}, got {array.dtype}") from None
        fits, dtype = True, found
    if not fits:
        raise UnreadablePayload(f"expected values of type {np.dtype(dtype)}, got {array.dtype}")
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    if made.dtype.kind in "iu":
        beyond = array[made != array]
    elif made.dtype.kind not in "fc" or np.isfinite(made).all():
        return made
    else:
        beyond = array[np.isinf(made) & np.isfinite(array)]
    if beyond.size:
        raise UnreadablePayload(f"{beyond[0]} is beyond {made.dtype}")
    return made
