"""The rows of a batch with tensors, each as its handler takes it, and the handler's answers as they are asked for."""

import math
import re
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, InferHead
from tsctl.handlers.tensors.arrays import arrays_of
from tsctl.handlers.tensors.datatypes import BF16, BYTES, DTYPES
from tsctl.handlers.tensors.numbers import fields_of
from tsctl.handlers.tensors.outputs import HEAD_LENGTH, SIZE, bytes_of
from tsctl.handlers.tensors.views import Views

_OWN = ("content-type", HEAD_LENGTH.lower())
_OPENING = re.compile(rb"[\[ \t\r\n]*")  # of all lists that contain the first element
_Members = dict[str, msgspec.Raw]


class _Unfit(Exception):
    """An output's elements are not what its datatype and shape say."""


def in_bytes(answer: wire.Answer, heads: ElementHeads) -> wire.Answer:
    """Answers of the protocol that a handler wrote as JSON, with the bytes of those outputs that the client wants so.

    The daemon passes them on. It reads what stays as it was, with numbers as text, on its event loop (6 ms for an
    image).

    Return an answer with bytes for the outputs that are wanted so; one that is none of the protocol as it is.
    """
    if answer.error or not (heads.binary or any(each.binary for each in heads.outputs)):
        return answer
    wanted = {each.name: each.binary for each in heads.outputs}
    follows: list[bytes] = []
    try:
        document = msgspec.json.decode(answer.body, type=_Members)
        outputs = msgspec.json.decode(document["outputs"], type=list[_Members])
        written = [_written(each, wanted, heads.binary, follows) for each in outputs]
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, _Unfit):
        return answer  # the daemon names the reason, where one is
    if not follows:
        return answer
    head = msgspec.json.encode({**document, "outputs": written})
    kept = [each for each in answer.headers if each[0].lower() not in _OWN]
    answer.headers = [*kept, ("Content-Type", "application/octet-stream"), (HEAD_LENGTH, str(len(head)))]
    answer.body = b"".join((head, *follows))
    return answer


def _written(output: _Members, wanted: dict[str, bool], binary: bool, follows: list[bytes]) -> dict[str, Any]:
    """Return an output's members; the bytes of one that is wanted so are added to `follows`."""
    if not wanted.get(msgspec.json.decode(output["name"], type=str), binary):
        return dict(output)
    parameters = msgspec.json.decode(output.get("parameters", b"null"), type=_Members | None) or {}
    if SIZE in parameters:  # bytes follow already
        raise _Unfit
    datatype = msgspec.json.decode(output["datatype"], type=str)
    data = _packed(datatype, msgspec.json.decode(output["shape"], type=list[int]), output["data"])
    follows.append(data)
    others = {name: value for name, value in output.items() if name != "data"}
    return others | {"parameters": {**parameters, SIZE: len(data)}}


def _packed(datatype: str, shape: list[int], data: msgspec.Raw) -> bytes:
    """Return the bytes of elements in JSON, flat or nested as the shape says.

    Raises:
        _Unfit: they do not fit the datatype or the shape.
        msgspec.DecodeError: an element is of another type, or they are nested otherwise.
    """
    if datatype not in DTYPES or any(size < 1 for size in shape):
        raise _Unfit
    opening = _OPENING.match(memoryview(data))
    depth = opening.group().count(b"[") if opening is not None else 0
    if depth not in (1, len(shape)):
        raise _Unfit
    values = _decoder(datatype, depth).decode(data)
    dtype = DTYPES[datatype]
    try:
        array = np.array(values, object) if datatype == BYTES else np.array(values)
    except ValueError:  # lists of different lengths
        raise _Unfit from None
    if array.shape != (tuple(shape) if depth > 1 else (math.prod(shape),)):
        raise _Unfit
    if datatype == BYTES:
        return b"".join(struct.pack("<I", len(each)) + each for each in map(str.encode, array.reshape(-1)))
    if datatype == "BOOL":
        return bytes_of(datatype, array)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            narrow = array.astype(dtype)
        made = bytes_of(datatype, narrow)
        halves = np.frombuffer(made, "<u2") if datatype == BF16 else None
        if not np.isfinite(narrow).all() or (halves is not None and (halves & 0x7F80 == 0x7F80).any()):
            raise _Unfit
        return made
    bounds = np.iinfo(dtype)
    if array.dtype.kind not in "iu" or array.min() < bounds.min or array.max() > bounds.max:
        raise _Unfit
    return bytes_of(datatype, array)


@cache
def _decoder(datatype: str, depth: int) -> msgspec.json.Decoder[Any]:
    kinds = {"f": float, "b": bool, "O": str}
    nested: Any = kinds.get(DTYPES[datatype].kind, int)
    for _ in range(depth):
        nested = list[nested]
    return msgspec.json.Decoder(nested)


Read = Callable[[Sequence[wire.Row]], list[Any]]


def read_rows(
    rows: Sequence[wire.Row], read: Read, views: Views, *, typed: bool
) -> tuple[list[Any], dict[int, UnreadablePayload]]:
    """Return what the handler finds in `data`, and the rows among these that cannot be read.

    Args:
        read: reads rows without tensors; those of a typed handler with tensors, too.
    """
    data: list[Any] = []
    refused: dict[int, UnreadablePayload] = {}
    for index, row in enumerate(rows):
        if isinstance(row.infer, InferHead):
            data.append(arrays_of(row.infer, row.params, views))
        elif row.infer is None or typed:
            data += read([row])
        else:
            try:
                data.append(fields_of(row, row.infer))
            except UnreadablePayload as error:
                data.append({})
                refused[index] = error
    return data, refused


def as_asked(rows: Sequence[wire.Row], answers: Sequence[wire.Answer]) -> list[wire.Answer]:
    """Return whole answers; those of the protocol in JSON have bytes for the outputs that are wanted so."""
    return [
        in_bytes(answer, row.infer) if isinstance(row.infer, ElementHeads) and row.infer.document else answer
        for row, answer in zip(rows, answers, strict=True)
    ]
