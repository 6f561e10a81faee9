"""Load over gRPC: ModelInfer of the Open Inference Protocol, so many calls in flight on one connection."""

from collections.abc import Iterator
from typing import Any

from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.tensors import NUMBERS
from tests.lab.benchmarks.workloads.workload import Workload

METHOD = "/inference.GRPCInferenceService/ModelInfer"


def run(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (calls in flight, figures), as `load.run`; an answer of a full client is checked before and after.

    Raises:
        LookupError: the answer is wrong, or the call failed.
    """
    from tests.extensions.grpc.load import Connection
    from tests.lab.percentile import nearest_rank

    message = _request(served.name)
    address = f"127.0.0.1:{running.grpc}"
    _check(address, message)
    connection = Connection(address, METHOD, message)
    try:
        for in_flight in workload.connections:
            tried = connection.make(20 * in_flight, in_flight)
            rate = len(tried.latencies) / tried.seconds
            connection.make(max(1, int(rate * workload.warm_up)), in_flight)
            before = running.cpu
            done = connection.make(max(1, int(rate * workload.seconds)), in_flight)
            used, calls = running.cpu - before, len(done.latencies)
            ordered = sorted(done.latencies)
            _check(address, message)
            yield in_flight, {
                "rate": calls / done.seconds, "cpu": used / calls, "pss": running.pss, "errors": 0,
                "p50": nearest_rank(ordered, 50), "p95": nearest_rank(ordered, 95), "p99": nearest_rank(ordered, 99),
            }  # fmt: skip
    finally:
        connection.close()


def _request(name: str) -> bytes:
    from tsctl.daemon.extensions.grpc.protos.messages import message_class

    message: Any = message_class("inference.ModelInferRequest")
    tensor = {"name": "NUMBERS", "datatype": "FP32", "shape": NUMBERS.shape}
    request = message(model_name=name, inputs=[tensor], raw_input_contents=[NUMBERS.values.tobytes()])
    encoded: bytes = request.SerializeToString()
    return encoded


def _check(address: str, message: bytes) -> None:
    import grpc

    from tsctl.daemon.extensions.grpc.protos.messages import message_class

    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)  # bytes in, bytes out
        try:
            answer: Any = message_class("inference.ModelInferResponse").FromString(call(message, timeout=30))
        except grpc.RpcError as error:
            raise LookupError(f"ModelInfer failed: {error.code()} {error.details()}") from None
    raw = b"".join(answer.raw_output_contents)
    found = memoryview(raw).cast("f").tolist() if raw else list(answer.outputs[0].contents.fp32_contents)
    if found != NUMBERS.wanted:
        raise LookupError(f"ModelInfer answered {found}, expected {NUMBERS.wanted}")
