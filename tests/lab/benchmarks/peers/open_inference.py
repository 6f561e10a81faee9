"""KServe's and MLServer's servers of the Open Inference Protocol: FastAPI and uvicorn in front.

MLServer does not know the protocol's binary tensors over HTTP, and is sent the same numbers in JSON.
"""

import json
from pathlib import Path

from tests.lab.benchmarks.models import TENSORS, app_environment
from tests.lab.benchmarks.peers.peer import OPEN_INFERENCE, Packaged, Running, Setup, free_port, spawn
from tests.lab.benchmarks.tensors import IMAGE

APPS = Path(__file__).parent / "apps"


class KServe(Packaged):
    name = "kserve"
    packages = ("kserve==0.21.0",)

    def suits(self, workload: str) -> bool:
        return workload in OPEN_INFERENCE

    def launch(self, setup: Setup) -> Running:
        port, grpc, name = free_port(), free_port(), setup.served.name
        ports = {"PORT": str(port), "GRPC_PORT": str(grpc)}
        environment = app_environment(setup.served, setup.batch_size, setup.delay) | ports
        process = spawn([self.python(), APPS / "kserve_app.py"], setup.folder, environment)
        output = setup.folder / "output.log"
        target, marks = f"/v2/models/{name}/infer", ("kserve_app",)
        return Running(process, port, target, output, marks, setup.served.headers, grpc=grpc)


class MLServer(Packaged):
    name = "mlserver"
    packages = ("mlserver==1.7.1", "uvloop<0.22")  # later ones have no loop before one runs, which it asks for

    def suits(self, workload: str) -> bool:
        return workload in OPEN_INFERENCE

    def launch(self, setup: Setup) -> Running:
        port, folder, name = free_port(), setup.folder, setup.served.name
        ports = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
        settings = {"host": "127.0.0.1", "parallel_workers": 1, **ports}
        model = {
            "name": name, "implementation": f"mlserver_app.{'Mean' if name == TENSORS else 'Sum'}",
            "max_batch_size": setup.batch_size, "max_batch_time": setup.delay,
        }  # fmt: skip
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "model-settings.json").write_text(json.dumps(model))
        body, headers = folder / "request.json", setup.served.headers
        if name == TENSORS:
            headers = IMAGE.write_json(body)
        else:
            body = setup.served.body
        process = spawn([self.python().parent / "mlserver", "start", folder], folder, {"PYTHONPATH": str(APPS)})
        target, marks, grpc = f"/v2/models/{name}/infer", ("spawn_main",), ports["grpc_port"]
        return Running(process, port, target, folder / "output.log", marks, headers, body, grpc=grpc)
