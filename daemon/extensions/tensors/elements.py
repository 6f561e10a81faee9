"""The protocol's datatypes, and their elements between Python's values and bytes.

Bytes are little endian, as in the binary tensor extension and in gRPC's raw contents. An element of BYTES is its
length in four bytes, and then its content. BF16 is the upper half of an FP32, rounded to the nearest even.
"""

import struct
from collections.abc import Iterator, Sequence

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.model_settings.declarations import DATATYPES

Element = bool | int | float | str | bytes

# Datatype → the letter of `struct`. BF16 and BYTES have none.
LETTERS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q",
    "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
FLOATS = ("FP16", "BF16", "FP32", "FP64")
LENGTH = struct.Struct("<I")
_SIZES = {each: struct.calcsize("<" + letter) for each, letter in LETTERS.items()} | {"BF16": 2, "BYTES": 0}
_STEP = 4096  # elements that are counted at a time: 1 ms (2-core Xeon VM)


def size_of(datatype: str) -> int:
    """Return the bytes of one element; 0 for BYTES, whose elements differ. Raise BadRequest for an unknown datatype."""
    size = _SIZES.get(datatype)
    if size is None:
        raise BadRequest(f"Unknown datatype: {datatype[:100]}; use one of {', '.join(DATATYPES)}.")
    return size


def pack(datatype: str, values: Sequence[Element]) -> bytes:
    """Return the bytes of flat values. Raise BadRequest for a value that the datatype cannot hold."""
    size_of(datatype)
    if odd := set(map(type, values)) - set(types_of(datatype)):
        raise BadRequest(f"A value of type {min(each.__name__ for each in odd)} is not of datatype {datatype}.")
    return pack_typed(datatype, values)


def pack_typed(datatype: str, values: Sequence[Element]) -> bytes:
    """Return the bytes of flat values whose types fit the datatype. Raise BadRequest for a value out of its range."""
    if datatype == "BYTES":
        return b"".join(map(_with_length, values))
    try:
        if datatype == "BF16":
            return _bfloats(values)
        return struct.pack(f"<{len(values)}{LETTERS[datatype]}", *values)
    except (struct.error, OverflowError):
        raise BadRequest(f"A value is out of the range of datatype {datatype}.") from None


def unpack(datatype: str, data: bytes | memoryview) -> list[Element]:
    """Return the flat values; those of BYTES are bytes. Raise BadRequest where `data` ends within an element."""
    size = size_of(datatype)
    if not size:
        return _byte_elements(data)
    count, rest = divmod(len(data), size)
    if rest:
        raise BadRequest(f"{len(data)} bytes are not a whole number of {datatype} elements of {size} bytes.")
    if datatype == "BF16":
        halves = struct.unpack(f"<{count}H", data)
        return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(half << 16 for half in halves))))
    return list(struct.unpack(f"<{count}{LETTERS[datatype]}", data))


def slices(datatype: str, data: bytes) -> Iterator[list[Element]]:
    """Yield the flat values, as `unpack` returns them, some thousands at a time; none for none."""
    size = size_of(datatype)
    at, end = 0, len(data)
    while at < end:
        start, count = at, 0
        if size:
            at = min(at + size * _STEP, end)
        while not size and at < end and count < _STEP:
            at = _end_of(data, at, count)
            count += 1
        yield unpack(datatype, data[start:at])


def types_of(datatype: str) -> tuple[type, ...]:
    """Return the types of values that the datatype takes; the first is that of its elements in JSON."""
    if datatype == "BYTES":
        return (str, bytes)
    if datatype == "BOOL":
        return (bool,)
    return (float, int) if datatype in FLOATS else (int,)


def _with_length(value: Element) -> bytes:
    try:
        content = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError:
        raise BadRequest("A text of datatype BYTES has a lone surrogate, which UTF-8 cannot encode.") from None
    assert isinstance(content, bytes)
    return LENGTH.pack(len(content)) + content


def count_steps(data: bytes | memoryview) -> Steps[int]:
    """Return the number of elements of BYTES, in steps. Raise BadRequest where `data` ends within one."""
    count, at, end, read = 0, 0, len(data), LENGTH.unpack_from
    last = end - LENGTH.size  # where the last length may begin
    while at <= last:
        stop = count + _STEP
        while at <= last and count < stop:
            at += LENGTH.size + read(data, at)[0]
            count += 1
        if at <= last:
            yield
    if at != end:
        raise BadRequest(_within(count - 1 if at > end else count, end))
    return count


def _byte_elements(data: bytes | memoryview) -> list[Element]:
    elements: list[Element] = []
    at, end = 0, len(data)
    while at < end:
        start, at = at + LENGTH.size, _end_of(data, at, len(elements))
        elements.append(bytes(data[start:at]))
    return elements


def _end_of(data: bytes | memoryview, at: int, number: int) -> int:
    """Return the end of the element of BYTES that begins at `at`."""
    start, end = at + LENGTH.size, len(data)
    if start > end or (at := start + LENGTH.unpack_from(data, at)[0]) > end:
        raise BadRequest(_within(number, end))
    return at


def _within(number: int, end: int) -> str:
    return f"Element {number} of datatype BYTES ends after the tensor's {end} bytes."


def _bfloats(values: Sequence[Element]) -> bytes:
    words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
    halves = [
        (word + 0x7FFF + (word >> 16 & 1)) >> 16 if word & 0x7FFFFFFF <= 0x7F800000
        else word >> 16 | 0x40  # NaN: rounding could carry it to infinity
        for word in words
    ]  # fmt: skip
    if (0x7F80 in halves or 0xFF80 in halves) and any(
        half & 0x7FFF == 0x7F80 and word & 0x7FFFFFFF != 0x7F800000 for half, word in zip(halves, words, strict=True)
    ):
        raise OverflowError
    return struct.pack(f"<{len(halves)}H", *halves)
