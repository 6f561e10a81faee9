"""Whatever a message is filled with: no step is long. The claim of tests/api/test_schema_bounds.py, over gRPC."""

from typing import Any

from google.protobuf.message import DecodeError

from tests.api.test_schema_bounds import Begin, check_each_step
from tests.extensions.grpc import schemas
from tests.kit.protocols import Cases
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.grpc.protos.limits import check_steps
from tsctl.daemon.extensions.grpc.protos.messages import request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps as message_steps


def received(name: str) -> Begin:
    """Return the reader of a message, from its bytes to what is made of it."""
    kind = request_class(name)

    def read(body: bytes) -> Steps[Any]:
        yield from check_steps(kind.DESCRIPTOR, body)
        try:
            message = kind.FromString(body)
        except DecodeError:
            return None
        yield
        return (yield from message_steps(message)) if name == "inference.ModelInferRequest" else message

    return read


def all_cases(size: int) -> Cases:
    for method, descriptor in schemas.requests_of().items():
        for name, body in schemas.messages(descriptor, size):
            yield received(descriptor.full_name), method + name, body()
    for name, body in schemas.tensor_messages(size):
        yield received("inference.ModelInferRequest"), name, body()


def test_no_step_is_long_whatever_field_is_filled() -> None:
    check_each_step(all_cases)
