"""The message classes of the services, in a pool of their own.

The process-wide pool would refuse a second file that declares the same names, as clients' generated stubs do.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, empty_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

# What `python -m tests.lab grpc-descriptions` makes of the .proto files beside it; a test keeps it fresh.
DESCRIPTIONS = Path(__file__).with_name("descriptions.pb")
# A field that is received as the bytes of its message, which are read in steps: numbers of 8 MiB took protobuf 50 ms.
_KEPT_AS_BYTES = ("ModelInferRequest", "InferInputTensor", "contents")


@cache
def pool() -> DescriptorPool:
    """Return the pool with all files of this room; read when first asked for."""
    return _pool_of(lambda file: file)


@cache
def _requests() -> DescriptorPool:
    """Return a pool as `pool`, for requests with bytes for contents; no client sees its descriptions."""
    return _pool_of(_with_contents_as_bytes)


def _pool_of(changed: Callable[[FileDescriptorProto], FileDescriptorProto]) -> DescriptorPool:
    made = DescriptorPool()
    for known in (any_pb2, empty_pb2):
        made.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in FileDescriptorSet.FromString(DESCRIPTIONS.read_bytes()).file:
        made.AddSerializedFile(changed(file).SerializeToString())
    return made


def _with_contents_as_bytes(file: FileDescriptorProto) -> FileDescriptorProto:
    message, inner, kept = _KEPT_AS_BYTES
    for each in (one for top in file.message_type if top.name == message for one in top.nested_type):
        for field in each.field if each.name == inner else ():
            if field.name == kept:
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")
    return file


@cache
def message_class(name: str) -> Any:
    """Return the class of a message by its full name; raise KeyError for an unknown one."""
    return GetMessageClass(pool().FindMessageTypeByName(name))


@cache
def request_class(name: str) -> Any:
    """Return the class by which a request is received: as `message_class`, but the contents of a tensor are bytes."""
    if name.rpartition(".")[2] != _KEPT_AS_BYTES[0]:
        return message_class(name)
    return GetMessageClass(_requests().FindMessageTypeByName(name))


def service(name: str) -> ServiceDescriptor:
    """Return the description of a service by its full name; raise KeyError for an unknown one."""
    return pool().FindServiceByName(name)
