"""What `python -m tests.lab` runs for gRPC."""

from tests.lab.programs import Program

PROGRAMS = {
    "grpc-calls": Program(
        "what a call over gRPC costs the daemon, beside a bare server of grpc.aio, and beside the request over HTTP",
        ('python -m tests.extensions.grpc.benchmarks.calls "$@"',),
    ),
    "grpc-descriptions": Program(
        "the descriptions that the daemon reads, of the .proto files; a test keeps them fresh",
        ("python -m tests.extensions.grpc.descriptions",),
    ),
}
