"""CPU of the daemon for a gRPC call: ModelInfer of 40 bytes, beside a server of grpc.aio that sends bytes back.

python -m tests.lab.benchmarks.grpc_calls [--calls 10000]

Sixteen calls are in flight on one connection. The third figure is the same request over HTTP: what the call would cost
without gRPC, in batches of the same clients.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import grpc
import uvloop

from daemon.api.grpc.protos.messages import message_class
from tests.e2e.served import Served
from tests.e2e.test_tensors import register
from tests.lab.benchmarks.measuring import processes

CLIENTS, ROUNDS, WARM_UP = 16, 3, 20
METHOD = "/inference.GRPCInferenceService/ModelInfer"
DATA = bytes(40)


class Cost(NamedTuple):
    """CPU seconds of the server for a call, and calls a second."""

    cpu: float
    rate: float


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


async def call(address: str, body: bytes, calls: int) -> float:
    """Make the calls; return the seconds that they took."""
    async with grpc.aio.insecure_channel(address) as channel:
        ask = channel.unary_unary(METHOD)

        async def client(count: int) -> None:
            for _ in range(count):
                await ask(body)

        began = time.monotonic()
        await asyncio.gather(*[client(calls // CLIENTS) for _ in range(CLIENTS)])
        return time.monotonic() - began


def own_cpu(pid: int) -> float:
    """Return the CPU seconds of one process, without its children."""
    return next(each.cpu for each in processes.read_all() if each.pid == pid)


def cost_of(pid: int, load: Callable[[int], float], calls: int) -> Cost:
    load(WARM_UP * CLIENTS)
    before = own_cpu(pid)
    seconds = load(calls)
    return Cost((own_cpu(pid) - before) / calls, calls / seconds)


def over_grpc(address: str, body: bytes) -> Callable[[int], float]:
    """Return what makes so many calls, and returns the seconds that they took."""
    return lambda calls: uvloop.run(call(address, body, calls))


def over_http(served: Served, file: Path, calls: int) -> float:
    options = ("--protocol", "v2", "--binary", "-c", str(CLIENTS), "-n", str(calls), "--json")
    seconds: float = json.loads(served.tsctl("bench", "x-fp32", str(file), *options))["seconds"]
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of a gRPC call, beside a bare server of grpc.aio.")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.echo:
        uvloop.run(serve_echo())
        return
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(DATA) // 4]}
    message: Any = message_class("inference.ModelInferRequest")
    body = message(model_name="x-fp32", inputs=[tensor], raw_input_contents=[DATA]).SerializeToString()
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
            found: dict[str, list[Cost]] = {"grpc.aio, echo": [], "tsctl, gRPC": [], "tsctl, HTTP": []}
            for _ in range(ROUNDS):
                found["grpc.aio, echo"].append(cost_of(echo.pid, over_grpc(bare, body), given.calls))
                found["tsctl, gRPC"].append(cost_of(served.pid, over_grpc(own, body), given.calls))
                found["tsctl, HTTP"].append(cost_of(served.pid, lambda n: over_http(served, file, n), given.calls))
        finally:
            served.stop()
            echo.kill()
    for name, costs in found.items():
        cpu, rate = median(each.cpu for each in costs), median(each.rate for each in costs)
        print(f"{name:15} {cpu * 1e6:6.0f} µs of CPU a call {rate:8.0f} calls/s")
    bare_cpu, own_cpu_ = (median(each.cpu for each in found[name]) for name in ("grpc.aio, echo", "tsctl, gRPC"))
    print(f"ratio {own_cpu_ / bare_cpu:.2f}")


if __name__ == "__main__":
    main()
