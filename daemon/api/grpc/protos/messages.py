"""The message classes of the services, in a pool of their own.

The process-wide pool would refuse a second file that declares the same names, as clients' generated stubs do.
"""

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, empty_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
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


@cache
def pool() -> DescriptorPool:
    """Return the pool with all files of this room; read when first asked for."""
    made = DescriptorPool()
    for known in (any_pb2, empty_pb2):
        made.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for name, file in FILES.items():
        made.AddSerializedFile(description(name, file).SerializeToString())
    return made


def description(name: str, file: str) -> FileDescriptorProto:
    """Return the description of one file of `protos`."""
    return ProtoReader(name, (PROTOS / file).read_text(encoding="utf-8"), PACKAGES.get(name, "")).file


@cache
def message_class(name: str) -> Any:
    """Return the class of a message by its full name; raise KeyError for an unknown one."""
    return GetMessageClass(pool().FindMessageTypeByName(name))


def service(name: str) -> ServiceDescriptor:
    """Return the description of a service by its full name; raise KeyError for an unknown one."""
    return pool().FindServiceByName(name)
