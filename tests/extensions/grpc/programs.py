"""What `python -m tests.lab` runs for gRPC."""

from tests.lab.programs import Program

PROGRAMS = {
    "grpc-descriptions": Program(
        "the descriptions that the daemon reads, of the .proto files; a test keeps them fresh",
        ("python -m tests.extensions.grpc.descriptions",),
    ),
}
