"""The message classes of the services, in a pool of their own.

The process-wide pool would refuse a second file that declares the same names, as clients' generated stubs do.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, empty_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from daemon.api.grpc.protos.proto_reader import ProtoReader

PROTOS = Path(__file__).parent
# The name under which others import the file → its file here; each after those that it imports.
FILES = {
    "google/rpc/status.proto": "status.proto",
    "inference.proto": "torchserve_inference.proto",
    "management.proto": "torchserve_management.proto",
    "grpc_health/v1/health.proto": "health.proto",
    "grpc_service.proto": "open_inference.proto",
    "open_inference_grpc.proto": "open_inference.proto",
    "grpc/reflection/v1/reflection.proto": "reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto": "reflection.proto",
}
# TorchServe's package of a file that standard clients know under another. The fields that the protocol has gained since
# TorchServe's copy change nothing for its clients: protobuf skips unknown ones.
PACKAGES = {
    "open_inference_grpc.proto": "org.pytorch.serve.grpc.openinference",
    "grpc/reflection/v1alpha/reflection.proto": "grpc.reflection.v1alpha",
}
# A field that is received as the bytes of its message, which are read in steps: numbers of 8 MiB took protobuf 50 ms.
_KEPT_AS_BYTES = ("ModelInferRequest", "InferInputTensor", "contents")


@cache
def pool() -> DescriptorPool:
    """Return the pool with all files of this room; read when first asked for."""
    return _pool_of(description)


def _pool_of(describe: Callable[[str, str], FileDescriptorProto]) -> DescriptorPool:
    made = DescriptorPool()
    for known in (any_pb2, empty_pb2):
        made.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for name, file in FILES.items():
        made.AddSerializedFile(describe(name, file).SerializeToString())
    return made


@cache
def _requests() -> DescriptorPool:
    """Return a pool as `pool`, for requests with bytes for contents; no client sees its descriptions."""
    return _pool_of(_description_of_requests)


def _description_of_requests(name: str, file: str) -> FileDescriptorProto:
    found = description(name, file)
    message, inner, kept = _KEPT_AS_BYTES
    for each in (one for top in found.message_type if top.name == message for one in top.nested_type):
        for field in each.field if each.name == inner else ():
            if field.name == kept:
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")
    return found


def description(name: str, file: str) -> FileDescriptorProto:
    """Return the description of one file of `protos`."""
    return ProtoReader(name, (PROTOS / file).read_text(encoding="utf-8"), PACKAGES.get(name, "")).file


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
