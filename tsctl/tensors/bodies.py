"""A request with tensors as bytes: a ModelInferRequest in the wire format of Protocol Buffers, or HTTP's binary form.

The message is written by hand, so that the load needs neither stubs nor protobuf: five kinds of fields are all there
are.
"""

import json
import struct

from tsctl.tensors.requests import RequestInTensors, RequestTensor, Values

LENGTH_HEADER = "Inference-Header-Content-Length"


def write_binary_body(request: RequestInTensors) -> tuple[bytes, list[list[str]]]:
    """Return the body and the headers of a request that asks for binary outputs."""
    inputs = [
        {
            "name": each.name,
            "datatype": each.datatype,
            "shape": list(each.shape),
            "parameters": each.parameters | {"binary_data_size": len(each.data)},
        }
        for each in request.inputs
    ]
    document = {"inputs": inputs, "parameters": {"binary_data_output": True} | request.parameters}
    if request.id:
        document["id"] = request.id
    if request.outputs:
        document["outputs"] = [{"name": name, "parameters": parameters} for name, parameters in request.outputs]
    head = json.dumps(document).encode()
    headers = [["Content-Type", "application/octet-stream"], [LENGTH_HEADER, str(len(head))]]
    return b"".join((head, *(each.data for each in request.inputs))), headers


METHOD = "/inference.GRPCInferenceService/ModelInfer"
_VARINT, _DOUBLE, _BYTES = 0, 1, 2  # wire types


def write_grpc_message(request: RequestInTensors, model: str, version: str = "") -> bytes:
    """Return the bytes of the message; an empty version is the model's default."""
    parts = [
        *(_text(number, text) for number, text in ((1, model), (2, version), (3, request.id)) if text),
        _parameters(4, request.parameters),
        *(_field(5, _tensor(each)) for each in request.inputs),
        *(_field(6, _text(1, name) + _parameters(2, parameters)) for name, parameters in request.outputs),
        *(_field(7, each.data) for each in request.inputs),
    ]
    return b"".join(parts)


def _tensor(tensor: RequestTensor) -> bytes:
    shape = b"".join(map(_varint, tensor.shape))
    named = _text(1, tensor.name) + _text(2, tensor.datatype)
    return named + _field(3, shape) + _parameters(4, tensor.parameters)


def _parameters(number: int, values: Values) -> bytes:
    return b"".join(_field(number, _text(1, name) + _field(2, _parameter(value))) for name, value in values.items())


def _parameter(value: bool | int | float | str) -> bytes:
    match value:
        case bool():
            return _key(1, _VARINT) + _varint(value)
        case int():
            return _key(2, _VARINT) + _varint(value)
        case str():
            return _text(3, value)
        case float():
            return _key(4, _DOUBLE) + struct.pack("<d", value)
    raise ValueError(f"the parameter {value!r} is neither a string nor a number nor a boolean")


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return b"".join((_key(number, _BYTES), _varint(len(content)), content))


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    """Return seven bits a byte, the lowest first; negative numbers are those of 64 bits."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
