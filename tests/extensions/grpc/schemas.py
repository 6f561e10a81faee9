"""The worst messages of each of gRPC's services: tests/lab/benchmarks/schemas.py, of the descriptions of messages."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.lab.benchmarks.schemas import Body, made, many
from tsctl.daemon.extensions.grpc.protos.messages import message_class, service

SERVICES = (
    "inference.GRPCInferenceService", "org.pytorch.serve.grpc.inference.InferenceAPIsService",
    "org.pytorch.serve.grpc.management.ManagementAPIsService", "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
)  # fmt: skip


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
