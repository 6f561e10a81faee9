"""What the daemon reads of the gRPC API is what its .proto files say."""

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.extensions.grpc.descriptions import FILES, compiled
from tsctl.daemon.extensions.grpc.protos.messages import DESCRIPTIONS


def test_the_descriptions_are_those_of_the_proto_files() -> None:
    kept = FileDescriptorSet.FromString(DESCRIPTIONS.read_bytes())

    assert kept == FileDescriptorSet.FromString(compiled()), "run `python -m tests.lab grpc-descriptions`"
    assert {each.name for each in kept.file} == set(FILES)
