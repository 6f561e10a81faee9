"""Triton: C++ in front, a Python function behind its dynamic batcher, as PyTriton runs it.

The function's tensors are BYTES: the bodies that other servers get, and the answers that they give. Of `tensor`
and `few_numbers`, they are the numbers.
"""

import json
import platform
import sysconfig
from pathlib import Path

from tests.lab.benchmarks import images
from tests.lab.benchmarks.environments import version_in
from tests.lab.benchmarks.models import DECLARED, app_environment
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn
from tests.lab.benchmarks.workload_names import BESIDE, KILL

APP = Path(__file__).parent / "apps" / "triton_app.py"
GLIBC = (2, 35)  # of the wheel


def answer_in(document: bytes) -> bytes:
    """Return the answer in a document of the Open Inference Protocol with one output of one string."""
    return str(json.loads(document)["outputs"][0]["data"][0]).encode()


def write_bytes(body: bytes, file: Path) -> dict[str, str]:
    """Write a request with a body as a binary tensor of BYTES: its length before it; return its headers."""
    data = len(body).to_bytes(4, "little") + body
    tensor = {"name": "BODY", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    file.write_bytes(head + data)
    return {"Content-Type": "application/octet-stream", images.HEADER: str(len(head))}


class Triton(Packaged):
    name = "triton"
    packages = ("nvidia-pytriton==0.7.0",)

    def install(self) -> str:
        return version_in(self.python(), "nvidia-pytriton")

    def suits(self, model: str) -> bool:
        return model not in (KILL, BESIDE)  # the function runs in the process that starts the server

    def lacks(self) -> str:
        libc, version = platform.libc_ver()
        numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
        if platform.machine() == "x86_64" and libc == "glibc" and numbers >= GLIBC:
            return ""
        return "its wheel is for x86-64 with glibc 2.35"

    def launch(self, setup: Setup) -> Running:
        served, port, grpc = setup.served, free_port(), free_port()
        environment = app_environment(served, setup.batch_size, setup.delay) | {
            "PORT": str(port), "GRPC_PORT": str(grpc), "METRICS_PORT": str(free_port()),
            # Its Python stub is linked with a libpython by name: the one of this interpreter has its library.
            "LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR")),
        }  # fmt: skip
        process = spawn([self.python(), APP], setup.folder, environment)
        running = Running(
            process, port, f"/v2/models/{served.name}/infer", setup.folder / "output.log", ("triton_app",),
            served.headers, grpc=f"127.0.0.1:{grpc}",
        )  # fmt: skip
        if served.name not in DECLARED:
            running.body = setup.folder / "request"
            running.headers = write_bytes(served.body.read_bytes(), running.body)
            running.read = answer_in
        return running
