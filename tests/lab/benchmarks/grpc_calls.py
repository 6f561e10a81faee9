"""CPU of the daemon for a gRPC call: ModelInfer of 100 bytes, beside a server of grpc.aio that sends the bytes back.

python -m tests.lab.benchmarks.grpc_calls [--calls 4000] [--in-flight 16]

The calls are in flight on one connection, from a client that costs little (grpc_load.py). A third figure is the same
request over HTTP from as many clients: the cost of the call without gRPC. The daemon is that of a wheel, compiled.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import grpc
import uvloop

from tests.compiled import compiled
from tests.e2e import served as end_to_end
from tests.e2e.served import Served
from tests.e2e.tensor_models import register
from tests.lab.benchmarks.grpc_load import Connection
from tests.lab.benchmarks.measuring import processes
from tsctl.daemon.api.grpc.protos.messages import message_class

CLIENTS, ROUNDS, WARM_UP, SIZE = 16, 7, 20, 100
METHOD = "/inference.GRPCInferenceService/ModelInfer"
DATA = bytes(40)


class Cost(NamedTuple):
    """CPU seconds of the server for a call, calls a second, and the median seconds of a call."""

    cpu: float
    rate: float
    latency: float


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Sends each request's bytes back."""

    def service(self, details: object) -> object:
        async def answer(request: bytes, context: object) -> bytes:
            return request

        return grpc.unary_unary_rpc_method_handler(answer)


async def serve_echo() -> None:
    """Serve until killed; the port is printed."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


def own_cpu(pid: int) -> float:
    """Return the CPU seconds of one process, without its children."""
    return next(each.cpu for each in processes.read_all() if each.pid == pid)


def cost_of(pid: int, load: Callable[[int], tuple[float, float]], calls: int) -> Cost:
    """Return the cost of calls to a server; `load` makes so many, and returns their seconds and one call's latency."""
    load(WARM_UP * CLIENTS)
    before = own_cpu(pid)
    seconds, latency = load(calls)
    return Cost((own_cpu(pid) - before) / calls, calls / seconds, latency)


def over_grpc(connection: Connection, in_flight: int, calls: int) -> tuple[float, float]:
    found = connection.make(calls, in_flight)
    return found.seconds, median(found.latencies)


def over_http(served: Served, file: Path, in_flight: int, calls: int) -> tuple[float, float]:
    options = ("--protocol", "v2", "--binary", "-c", str(in_flight), "-n", str(calls), "--json")
    found = json.loads(served.tsctl("bench", "x-fp32", str(file), *options))
    return found["seconds"], found["latency"]["p50"]


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of a gRPC call, beside a bare server of grpc.aio.")
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--in-flight", type=int, default=CLIENTS)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.echo:
        uvloop.run(serve_echo())
        return
    end_to_end.TSCTL = compiled().parent / "tsctl"
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(DATA) // 4]}
    message: Any = message_class("inference.ModelInferRequest")
    request = message(model_name="x-fp32", inputs=[tensor], raw_input_contents=[DATA])
    request.id = "x" * (SIZE - request.ByteSize() - 2)  # a tag and a length go before it
    body = request.SerializeToString()
    assert len(body) == SIZE
    echo = subprocess.Popen(
        [sys.executable, "-m", "tests.lab.benchmarks.grpc_calls", "--echo"], stdout=subprocess.PIPE, text=True
    )
    with tempfile.TemporaryDirectory(prefix="tsctl-grpc-") as folder, echo:
        assert echo.stdout is not None
        bare = f"127.0.0.1:{int(echo.stdout.readline())}"
        served = Served(Path(folder))
        served.start("--grpc-address", "127.0.0.1:0")
        try:
            register(served, "FP32")
            served.tsctl("set", "x-fp32", "--batch-size", str(CLIENTS), "--max-delay", "100")
            own = served.status["grpcAddresses"][0].partition("://")[2]
            file = Path(folder) / "elements"
            file.write_bytes(DATA)
            at = given.in_flight
            connections = [Connection(address, METHOD, body) for address in (bare, own)]
            loads = {
                "grpc.aio, echo": (echo.pid, partial(over_grpc, connections[0], at)),
                "tsctl, gRPC": (served.pid, partial(over_grpc, connections[1], at)),
                "tsctl, HTTP": (served.pid, partial(over_http, served, file, at)),
            }
            found: dict[str, list[Cost]] = {name: [] for name in loads}
            for _ in range(ROUNDS):
                for name, (pid, load) in loads.items():
                    found[name].append(cost_of(pid, load, given.calls))
        finally:
            served.stop()
            echo.kill()
    middle = {name: Cost(*map(median, zip(*costs, strict=True))) for name, costs in found.items()}
    for name, cost in middle.items():
        print(f"{name:15} {cost.cpu * 1e6:6.0f} µs of CPU a call {cost.rate:8.0f} calls/s {cost.latency * 1e3:7.2f} ms")
    ratios = [own.cpu / echo.cpu for own, echo in zip(found["tsctl, gRPC"], found["grpc.aio, echo"], strict=True)]
    print(f"ratio {median(ratios):.2f}, in rounds {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
