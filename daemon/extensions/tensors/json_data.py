"""Elements of a tensor in JSON: flat, or nested as the shape says.

Parsed and packed in C, large ones in slices (slices.py): 150 000 numbers of FP32 take 6 ms; as bytes in the
arena 6 µs (measured at d82013d7).
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import msgspec

from tsctl.daemon.core.arena import Payload, Take
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.tensors.elements import size_of, types_of
from tsctl.daemon.extensions.tensors.sizes import check_shape
from tsctl.daemon.extensions.tensors.slices import SLICED_FROM, pack_numbers, pack_texts, pack_values
from tsctl.daemon.model_settings.declarations import MOST_RANK

_OPENING = re.compile(rb"[\[ \t\r\n]*")  # of all lists that contain the first element


def pack_steps(
    what: str,
    datatype: str,
    shape: Sequence[int],
    data: msgspec.Raw,
    take: Take | None = None,
) -> Steps[Payload]:
    """Return the bytes of elements in JSON; large data are packed in steps.

    Args:
        what: the tensor, for the sentence: "input INPUT0".
        take: returns a place in the arena for them, as in `Gathered`.

    Raises:
        BadRequest: the datatype is unknown, an element is not of it, or the elements do not have the shape.
    """
    size_of(datatype)
    count = check_shape(what, shape)
    depth = _depth(memoryview(data))
    if depth > MOST_RANK:
        raise BadRequest(f"The data of {what} has more than {MOST_RANK} dimensions.")
    if depth and len(memoryview(data)) > SLICED_FROM:
        if not count:
            raise BadRequest(f"The shape of {what} is {list(shape)}, which has no elements: send its data as [].")
        dims = shape if depth > 1 else (count,)
        decode = _decoder(types_of(datatype)[0], 1).decode
        if datatype == "BYTES":
            return (yield from pack_texts(what, dims, bytes(data), decode, take))
        return (yield from pack_numbers(what, datatype, dims, bytes(data), decode, take))
    try:
        values = _decoder(types_of(datatype)[0], depth or 1).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The data of {what} is not {datatype}: {error}") from None
    if depth > 1 and not count:  # where a dimension is 0, those behind it leave no trace
        for _ in range(depth - 1):
            values = list(chain.from_iterable(values))
    elif depth > 1:
        if depth != len(shape):
            raise BadRequest(f"The data of {what} has {depth} dimensions; its shape {list(shape)} has {len(shape)}.")
        values = _flat(what, shape, values)
    if len(values) != count:
        raise BadRequest(f"{len(values)} elements for {what}; its shape {list(shape)} needs {count}.")
    return pack_values(what, datatype, values)


def _flat(what: str, shape: Sequence[int], values: list[Any]) -> list[Any]:
    level = [values]
    for size in shape:
        if others := set(map(len, level)) - {size}:
            raise BadRequest(
                f"The data of {what} has a list of {min(others)} elements, which does not fit the shape {list(shape)}."
            )
        level = list(chain.from_iterable(level))
    return level


@cache
def _decoder(kind: type, depth: int) -> msgspec.json.Decoder[Any]:
    nested: Any = kind
    for _ in range(depth):
        nested = list[nested]
    return msgspec.json.Decoder(nested)


def _depth(data: memoryview) -> int:
    """Return how many lists open at the start of the data."""
    opening = _OPENING.match(data)
    assert opening is not None
    return opening.group().count(b"[")
