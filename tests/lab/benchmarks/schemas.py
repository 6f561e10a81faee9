"""The worst bodies of each schema: in each, one field has as many small members as fit.

They are derived from what reads them (the structs of JSON, the descriptions of gRPC's messages), so that a new field
has its bodies by itself. A body is a function that makes it: some have 64 MiB, and most programs take them singly.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import inspect

from tsctl.daemon.api.grpc.protos.messages import message_class, service

SERVICES = (
    "inference.GRPCInferenceService", "org.pytorch.serve.grpc.inference.InferenceAPIsService",
    "org.pytorch.serve.grpc.management.ManagementAPIsService", "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
)  # fmt: skip

Body = Callable[[], bytes]


def json_bodies(struct: Any, size: int) -> Iterator[tuple[str, Body]]:
    """Yield documents of a struct, of about `size` bytes each: what is filled with what, and the document."""
    kind = inspect.type_info(struct)
    yield from _filled(kind, size, "")
    opened = least(kind)[:-1] + b","
    yield "unknown members", lambda: opened + many(b'"x":1,', b'"x":1', size) + b"}"
    yield "an unknown member", lambda: opened + b'"x":[' + many(b"[],", b"[]", size) + b"]}"
    yield "white space", lambda: b" " * size + opened[:-1] + b"}"
    yield "brackets", lambda: b"[" * size


def _filled(kind: inspect.Type, size: int, path: str) -> Iterator[tuple[str, Body]]:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _filled(each, size, path)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            for name, value in _filled(field.type, size, f"{path}.{field.encode_name}"):
                yield name, made(partial(least, kind, field.encode_name), value)
    elif isinstance(kind, inspect.ListType):
        yield f"{path}: many", partial(many_of, least(kind.item_type), size)
        for name, value in _filled(kind.item_type, size, f"{path}[]"):
            yield name, made(b"[%b]".__mod__, value)
    elif isinstance(kind, inspect.DictType):
        one = least(kind.value_type)
        yield f"{path}: one name", lambda: b"{" + many(b'"a":' + one + b",", b'"a":' + one, size) + b"}"
        yield f"{path}: many names", lambda: b"{" + _names(one, size) + b"}"
    elif isinstance(kind, inspect.StrType):
        yield f"{path}: escapes", lambda: b'"' + many(rb"\"", b"", size) + b'"'
        yield f"{path}: a long text", lambda: b'"' + b"x" * size + b'"'
    elif isinstance(kind, inspect.RawType):
        for what, one in (("numbers", b"1"), ("lists", b"[1]"), ("texts", b'""'), ("objects", b"{}")):
            yield f"{path}: {what}", partial(many_of, one, size)


def made(make: Callable[[bytes], bytes], inner: Body) -> Body:
    """Return a body that is made of another one."""
    return lambda: make(inner())


def many_of(one: bytes, size: int) -> bytes:
    """Return a list of about `size` bytes, whose elements are all `one`."""
    return b"[" + many(one + b",", one, size) + b"]"


def _names(value: bytes, size: int) -> bytes:
    return b",".join(b'"%x":%b' % (each, value) for each in range(size // (9 + len(value))))


def least(kind: inspect.Type, name: str = "", value: bytes = b"") -> bytes:
    """Return the shortest value of a type; `name` and `value` are a member that a struct has besides."""
    match kind:
        case inspect.UnionType():
            return min(map(least, kind.types), key=len)
        case inspect.StructType():
            values = {each.encode_name: least(each.type) for each in kind.fields if each.required}
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


def many(one: bytes, last: bytes, size: int) -> bytes:
    """Return about `size` bytes of `one`, again and again, and then `last`."""
    return one * (size // len(one)) + last


def requests_of(services: tuple[str, ...] = SERVICES) -> dict[str, Any]:
    """Return the descriptions of all messages that clients send, by method."""
    return {
        f"{name.rpartition('.')[2]}/{method.name}": message_class(method.input_type.full_name).DESCRIPTOR
        for name in services
        for method in service(name).methods
    }


def messages(descriptor: Any, size: int, path: str = "") -> Iterator[tuple[str, Body]]:
    """Yield messages of about `size` bytes, valid or not: what is filled with what, and the message."""
    for field in descriptor.fields:
        here = f"{path}.{field.name}"
        delimited = partial(_delimited, field.number)
        empty = partial(many, _tag(field.number, 2) + b"\0", b"", size)
        if field.message_type is not None:
            yield f"{here}: empty", empty
            for name, inner in messages(field.message_type, size, here):
                yield name, made(delimited, inner)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield f"{here}: empty", empty
            yield f"{here}: long", made(delimited, partial(many, b"x", b"", size))
        else:
            yield f"{here}: packed", made(delimited, partial(many, b"\1", b"", size))
            yield f"{here}: single", partial(many, _tag(field.number, 0) + b"\1", b"", size)
    if not path:
        yield "unknown fields", partial(many, _tag(15, 0) + b"\1", b"", size)
        yield "unknown groups", partial(many, _tag(15, 3) + _tag(15, 4), b"", size)


def tensor_messages(size: int) -> Iterator[tuple[str, Body]]:
    """Yield valid requests for inference, each with the contents of one datatype."""
    for datatype, field, value in (
        ("INT32", 2, b"\1"), ("UINT64", 5, b"\xff" * 9 + b"\1"), ("FP32", 6, b"\0\0\x80\x3f"), ("BOOL", 1, b"\1"),
    ):  # fmt: skip
        contents = made(partial(_delimited, field), partial(many, value, b"", size))
        yield f"{datatype}, typed", partial(_typed, datatype, size // len(value), contents)
    short = min(size, 2**20)  # more texts take long
    yield "BYTES, typed", partial(_typed, "BYTES", short // 2, partial(many, _tag(8, 2) + b"\0", b"", short))
    yield "BYTES, raw", partial(_raw, "BYTES", 4, size)
    yield "INT32, raw", partial(_raw, "INT32", 4, size)
    yield "as many tensors as may be", _most_tensors


def _typed(datatype: str, count: int, contents: Body) -> bytes:
    tensor = message_class("inference.ModelInferRequest.InferInputTensor")(name="xs", datatype=datatype, shape=[count])
    return _infer([]) + _delimited(5, tensor.SerializeToString() + _delimited(5, contents()))


def _raw(datatype: str, width: int, size: int) -> bytes:
    tensor = {"name": "xs", "datatype": datatype, "shape": [size // width]}
    return _infer([tensor], raw_input_contents=[bytes(size // width * width)])


def _most_tensors() -> bytes:
    named = [{"name": str(each), "datatype": "UINT8", "shape": [0]} for each in range(1000)]
    return _infer(named, outputs=[{"name": "a"}] * 1000, raw_input_contents=[b""] * 1000)


def _infer(inputs: list[Any], **others: Any) -> bytes:
    request = message_class("inference.ModelInferRequest")(model_name="typed", inputs=inputs, **others)
    written: bytes = request.SerializeToString()
    return written


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
