"""The bytes of a tensor's elements: little-endian, row by row; those of BYTES each after their length."""

import struct
from collections.abc import Iterator
from typing import Any

# Datatype → the letter of `struct`. BF16 has none.
_LETTERS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip


def size_of(datatype: str) -> int:
    """Return the bytes of one element; 0 for BYTES, whose elements have a length each, and for unknown datatypes."""
    return 2 if datatype == "BF16" else struct.calcsize(_LETTERS.get(datatype, ""))


def packed(datatype: str, data: Any) -> bytes:
    """Return the bytes of elements that JSON holds, as a flat or a nested list.

    Raises:
        ValueError: an element does not fit the datatype, or JSON has no way to write elements of this datatype.
    """
    elements = list(_flat(data))
    if datatype == "BYTES":
        if not all(isinstance(each, str) for each in elements):
            raise ValueError("elements of BYTES are strings in JSON")
        texts = [each.encode() for each in elements]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    letter = _LETTERS.get(datatype)
    if letter is None:
        raise ValueError(f"elements of `{datatype}` cannot be packed from JSON")
    try:
        return struct.pack(f"<{len(elements)}{letter}", *elements)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"elements of {datatype}: {error}") from None


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for each in data:
            yield from _flat(each)
    else:
        yield data
