"""NVIDIA's Triton with a function in Python: the wheel of PyTriton carries the server.

A body is sent as the one tensor of a raw binary request, an element of bytes, and so is the answer. Images of
numbers are binary tensors, as for all servers of the Open Inference Protocol.
"""

import json
import platform
import sysconfig
from pathlib import Path

from tests.lab.benchmarks.environments import version_in
from tests.lab.benchmarks.models import TENSORS, VECTORS, app_environment
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

APP = Path(__file__).parent / "apps" / "triton_app.py"
GLIBC = (2, 35)  # of the wheel
RAW = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}


class Triton(Packaged):
    name = "triton"
    packages = ("nvidia-pytriton==0.7.0",)

    def install(self) -> str:
        return version_in(self.python(), "nvidia-pytriton")

    def lacks(self) -> str:
        libc, version = platform.libc_ver()
        numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
        fits = platform.machine() == "x86_64" and libc == "glibc" and numbers >= GLIBC
        return "" if fits else "its wheel is for x86-64 with glibc 2.35"

    def suits(self, workload: str) -> bool:
        return workload != "kill"  # the function runs in the process that began the server: there is no worker to end

    def launch(self, setup: Setup) -> Running:
        port, name = free_port(), setup.served.name
        ports = {"HTTP_PORT": str(port), "GRPC_PORT": str(free_port()), "METRICS_PORT": str(free_port())}
        environment = app_environment(setup.served, setup.batch_size, setup.delay, setup.beside) | ports
        # The interpreter that the server loads must be that of the standard library beside the app.
        environment["LD_LIBRARY_PATH"] = sysconfig.get_config_var("LIBDIR")
        process = spawn([self.python(), APP], setup.folder, environment)
        target, output, marks = f"/v2/models/{name}/infer", setup.folder / "output.log", ("triton_app",)
        if name in (TENSORS, VECTORS):
            grpc = int(ports["GRPC_PORT"])
            return Running(process, port, target, output, marks, setup.served.headers, grpc=grpc)
        beside = f"/v2/models/{setup.beside}/infer"
        return Running(process, port, target, output, marks, RAW, unwrap=element, beside=beside)


def element(body: bytes) -> bytes:
    """Return the only element of a binary response: a head in JSON, four bytes of length, the element.

    Raises:
        ValueError: the body is another one.
    """
    head, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    if not isinstance(head, dict):
        raise ValueError(f"expected a head in JSON, got {body[:100]!r}")
    return body[end + 4 :]
