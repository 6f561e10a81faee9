"""The worst bodies of each schema: in each, one field has as many small members as fit.

They are derived from what reads them (the structs of JSON, the descriptions of gRPC's messages), so that a new field
has its bodies by itself.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from daemon.api.grpc.protos.messages import message_class, service

SERVICES = (
    "inference.GRPCInferenceService", "org.pytorch.serve.grpc.inference.InferenceAPIsService",
    "org.pytorch.serve.grpc.management.ManagementAPIsService", "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
)  # fmt: skip


def json_bodies(struct: Any, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield documents of a struct, of about `size` bytes each: what is filled with what, and the document."""
    yield from _filled(inspect.type_info(struct), size, "")
    document = _least(inspect.type_info(struct))
    yield "unknown members", document[:-1] + b"," + _many(b'"x":1,', b'"x":1', size) + b"}"
    yield "an unknown member", document[:-1] + b',"x":' + b"[" + _many(b"[],", b"[]", size) + b"]}"
    yield "white space", b" " * size + document
    yield "brackets", b"[" * size


def _filled(kind: inspect.Type, size: int, path: str) -> Iterator[tuple[str, bytes]]:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _filled(each, size, path)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            for name, value in _filled(field.type, size, f"{path}.{field.encode_name}"):
                yield name, _least(kind, field.encode_name, value)
    elif isinstance(kind, inspect.ListType):
        least = _least(kind.item_type)
        yield f"{path}: many", b"[" + _many(least + b",", least, size) + b"]"
        for name, value in _filled(kind.item_type, size, f"{path}[]"):
            yield name, b"[" + value + b"]"
    elif isinstance(kind, inspect.DictType):
        least = _least(kind.value_type)
        yield f"{path}: one name", b"{" + _many(b'"a":' + least + b",", b'"a":' + least, size) + b"}"
        names = b",".join(b'"%x":%b' % (each, least) for each in range(size // (9 + len(least))))
        yield f"{path}: many names", b"{" + names + b"}"
    elif isinstance(kind, inspect.StrType):
        yield f"{path}: escapes", b'"' + _many(rb"\"", b"", size) + b'"'
        yield f"{path}: a long text", b'"' + b"x" * size + b'"'
    elif isinstance(kind, inspect.RawType):
        for what, one in (("numbers", b"1"), ("lists", b"[1]"), ("texts", b'""'), ("objects", b"{}")):
            yield f"{path}: {what}", b"[" + _many(one + b",", one, size) + b"]"


def _least(kind: inspect.Type, name: str = "", value: bytes = b"") -> bytes:
    """Return the shortest value of a type; `name` and `value` are a member that a struct has besides."""
    match kind:
        case inspect.UnionType():
            return min(map(_least, kind.types), key=len)
        case inspect.StructType():
            values = {each.encode_name: _least(each.type) for each in kind.fields if each.required}
            values |= {name: value} if name else {}
            return b"{" + b",".join(b'"%b":%b' % (key.encode(), each) for key, each in values.items()) + b"}"
        case inspect.ListType():
            return b"[]"
        case inspect.DictType():
            return b"{}"
        case inspect.StrType():
            return b'"a"'
        case inspect.NoneType():
            return b"null"
        case inspect.BoolType():
            return b"true"
    return b"1"


def _many(one: bytes, last: bytes, size: int) -> bytes:
    return one * (size // len(one)) + last


def openai_bodies(message: Any, part: Any, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield requests of OpenAI's API; `message` and `part` are the structs of a message, and of a part of one."""
    for name, value in (
        ("prompt: many", b"[" + _many(b'"",', b'""', size) + b"]"),
        ("prompt: escapes", b'"' + _many(rb"\"", b"", size) + b'"'),
        ("prompt: a long text", b'"' + "\u20ac".encode() * (size // 3) + b'"'),
    ):  # fmt: skip
        yield name, b'{"model":"sized","prompt":%b}' % value
    yield "members", b'{"model":"sized",' + _many(b'"a":1,', b'"prompt":""', size) + b"}"
    least = _least(inspect.type_info(message))
    yield "messages: many", b'{"model":"sized","messages":[' + _many(least + b",", least, size) + b"]}"
    for name, value in json_bodies(message, size):
        yield f"message {name}", b'{"model":"sized","messages":[%b]}' % value
    for name, value in json_bodies(part, size):
        yield f"part {name}", b'{"model":"sized","messages":[{"role":"user","content":[%b]}]}' % value


def requests_of(services: tuple[str, ...] = SERVICES) -> dict[str, Any]:
    """Return the descriptions of all messages that clients send, by method."""
    return {
        f"{name.rpartition('.')[2]}/{method.name}": message_class(method.input_type.full_name).DESCRIPTOR
        for name in services
        for method in service(name).methods
    }


def messages(descriptor: Any, size: int, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield messages of about `size` bytes, valid or not: what is filled with what, and the message."""
    for field in descriptor.fields:
        here = f"{path}.{field.name}"
        empty = _tag(field.number, 2) + b"\0"
        if field.message_type is not None:
            yield f"{here}: empty", _many(empty, b"", size)
            for name, inner in messages(field.message_type, size, here):
                yield name, _delimited(field.number, inner)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield f"{here}: empty", _many(empty, b"", size)
            yield f"{here}: long", _delimited(field.number, b"x" * size)
        else:
            yield f"{here}: packed", _delimited(field.number, b"\1" * size)
            yield f"{here}: single", _many(_tag(field.number, 0) + b"\1", b"", size)
    if not path:
        yield "unknown fields", _many(_tag(15, 0) + b"\1", b"", size)
        yield "unknown groups", _many(_tag(15, 3) + _tag(15, 4), b"", size)


def tensor_messages(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield valid requests for inference, each with the contents of one datatype."""
    kind = message_class("inference.ModelInferRequest")
    for datatype, field, value, width in (
        ("INT32", "int_contents", 1, 1), ("UINT64", "uint64_contents", 2**64 - 1, 10),
        ("FP32", "fp32_contents", 1.0, 4), ("BOOL", "bool_contents", True, 1), ("BYTES", "bytes_contents", b"", 2),
    ):  # fmt: skip
        count = size // width
        tensor = {"name": "a", "datatype": datatype, "shape": [count], "contents": {field: [value] * count}}
        yield f"{datatype}, typed", kind(model_name="sized", inputs=[tensor]).SerializeToString()
    raw = kind(model_name="sized", inputs=[{"name": "a", "datatype": "BYTES", "shape": [size // 4]}])
    raw.raw_input_contents.append(bytes(size // 4 * 4))
    yield "BYTES, raw", raw.SerializeToString()
    named = [{"name": str(each), "datatype": "UINT8", "shape": [0]} for each in range(1000)]
    most = kind(model_name="sized", inputs=named, outputs=[{"name": "a"}] * 1000, raw_input_contents=[b""] * 1000)
    yield "as many tensors as may be", most.SerializeToString()


def _delimited(number: int, content: bytes) -> bytes:
    return _tag(number, 2) + _number(len(content)) + content


def _tag(number: int, kind: int) -> bytes:
    return _number(number << 3 | kind)


def _number(value: int) -> bytes:
    found = bytearray()
    while value >= 128:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes(found) + bytes((value,))
