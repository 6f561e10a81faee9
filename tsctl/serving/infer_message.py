"""A request of the Open Inference Protocol in JSON as the message of its gRPC call, without protobuf.

The fields are those of `inference.ModelInferRequest`: model_name 1, model_version 2, id 3, inputs 5 (name 1, datatype
2, shape 3), raw_input_contents 7. Tensors travel as raw bytes, little endian; each element of BYTES after its length.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any

from tsctl.errors import CliError

_FORMATS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
_TEXT = 2  # wire type of a field with a length


def infer_message(body: bytes, model: str, version: str = "") -> bytes:
    """Return the message of a request in JSON.

    Raises:
        CliError: the body is no request of the protocol, or holds what the message cannot.
    """
    try:
        request = json.loads(body)
        inputs = [(each["name"], each["datatype"], each["shape"], each["data"]) for each in request["inputs"]]
    except (ValueError, KeyError, TypeError):
        raise CliError(
            "the input is no request of the Open Inference Protocol in JSON",
            'write one: {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}',
        ) from None
    parts = [_field(1, model.encode()), _field(2, version.encode()), _field(3, str(request.get("id", "")).encode())]
    raw = []
    for name, datatype, shape, data in inputs:
        tensor = _field(1, str(name).encode()) + _field(2, str(datatype).encode())
        tensor += _field(3, b"".join(_number(length) for length in shape))
        parts.append(_field(5, tensor))
        raw.append(_field(7, _packed(str(datatype), list(_flat(data)))))
    return b"".join((*parts, *raw))


def _packed(datatype: str, elements: list[Any]) -> bytes:
    if datatype == "BYTES":
        texts = [str(each).encode() for each in elements]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    kind = _FORMATS.get(datatype)
    try:
        if kind is None:
            raise ValueError("it has no format here")
        return struct.pack(f"<{len(elements)}{kind}", *elements)
    except (struct.error, ValueError, TypeError, OverflowError) as error:
        raise CliError(f"an input of datatype {datatype} cannot be sent over gRPC: {error}") from None


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for each in data:
            yield from _flat(each)
    else:
        yield data


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | _TEXT) + _number(len(content)) + content


def _number(value: int) -> bytes:
    """Return a varint."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(found) + bytes([value])
