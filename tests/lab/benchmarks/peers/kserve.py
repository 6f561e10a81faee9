"""KServe's server of the Open Inference Protocol: FastAPI and uvicorn in front."""

from pathlib import Path

from tests.lab.benchmarks.models import app_environment
from tests.lab.benchmarks.peers.peer import OPEN_INFERENCE, Packaged, Running, Setup, free_port, spawn

APP = Path(__file__).parent / "apps" / "kserve_app.py"


class KServe(Packaged):
    name = "kserve"
    packages = ("kserve==0.21.0",)

    def suits(self, workload: str) -> bool:
        return workload in OPEN_INFERENCE

    def launch(self, setup: Setup) -> Running:
        port, grpc, name = free_port(), free_port(), setup.served.name
        ports = {"PORT": str(port), "GRPC_PORT": str(grpc)}
        environment = app_environment(setup.served, setup.batch_size, setup.delay) | ports
        process = spawn([self.python(), APP], setup.folder, environment)
        output = setup.folder / "output.log"
        target, marks = f"/v2/models/{name}/infer", ("kserve_app",)
        return Running(process, port, target, output, marks, setup.served.headers, grpc=grpc)
