"""gRPC: ModelInfer of the Open Inference Protocol over one connection, for each number of calls in flight."""

import time
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

import grpc

from daemon.api.grpc.protos.messages import message_class
from tests.lab.benchmarks import few_numbers
from tests.lab.benchmarks.grpc_load import Connection
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.peer import Running
from tests.lab.benchmarks.reporting.results import Figures
from tests.lab.benchmarks.workloads.workload import Workload

METHOD = "/inference.GRPCInferenceService/ModelInfer"
CALLS = 20  # in one go


def run(running: Running, workload: Workload, served: Served) -> Iterator[tuple[int, Figures]]:
    """Yield (calls in flight, figures), as load.py does for connections.

    Raises:
        OSError: the server ended a call without an answer, or the connection.
    """
    body = few_numbers.message(served.name)
    connection = Connection(running.grpc, METHOD, body)
    try:
        _calls(connection, max(workload.connections), workload.warm_up)
        for in_flight in workload.connections:
            before = running.cpu
            latencies, seconds = _calls(connection, in_flight, workload.seconds)
            used = running.cpu - before
            cuts = quantiles(latencies, n=100, method="inclusive")
            yield (
                in_flight,
                {
                    "rate": len(latencies) / seconds, "p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "errors": 0,
                    "wrong": int(not _is_right(running.grpc, body)), "pss": running.pss, "cpu": used / len(latencies),
                },
            )  # fmt: skip
    finally:
        connection.close()


def _calls(connection: Connection, in_flight: int, seconds: float) -> tuple[list[float], float]:
    """Make calls for so long; return their latencies, and the seconds that they took."""
    latencies: list[float] = []
    began = time.perf_counter()
    while (taken := time.perf_counter() - began) < seconds or len(latencies) < CALLS:
        latencies += connection.make(max(CALLS, 2 * in_flight), in_flight).latencies
    return latencies, taken


def _is_right(address: str, body: bytes) -> bool:
    """Make one call with gRPC's own client, and check the mean that it returns."""
    response: Any = message_class("inference.ModelInferResponse")
    with grpc.insecure_channel(address) as channel:
        try:
            answer = channel.unary_unary(METHOD, None, response.FromString)(body, timeout=30)
        except grpc.RpcError:
            return False
    return few_numbers.right_message(answer)
