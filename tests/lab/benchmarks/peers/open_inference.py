"""KServe's and MLServer's servers of the Open Inference Protocol: FastAPI and uvicorn in front.

MLServer does not know the protocol's binary tensors over HTTP, and is sent the same numbers in JSON.
"""

import json
from pathlib import Path

from tests.lab.benchmarks import images
from tests.lab.benchmarks.models import TENSORS, app_environment
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

APPS = Path(__file__).parent / "apps"


class KServe(Packaged):
    name = "kserve"
    packages = ("kserve==0.21.0",)

    def suits(self, model: str) -> bool:
        return model == TENSORS

    def launch(self, setup: Setup) -> Running:
        port, name = free_port(), setup.served.name
        environment = app_environment(setup.served, setup.batch_size, setup.delay) | {"PORT": str(port)}
        process = spawn([self.python(), APPS / "kserve_app.py"], setup.folder, environment)
        output = setup.folder / "output.log"
        return Running(process, port, f"/v2/models/{name}/infer", output, ("kserve_app",), setup.served.headers)


class MLServer(Packaged):
    name = "mlserver"
    packages = ("mlserver==1.7.1", "uvloop<0.22")  # later ones have no loop before one runs, which it asks for

    def suits(self, model: str) -> bool:
        return model == TENSORS

    def launch(self, setup: Setup) -> Running:
        port, folder, name = free_port(), setup.folder, setup.served.name
        ports = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
        settings = {"host": "127.0.0.1", "parallel_workers": 1, **ports}
        model = {
            "name": name, "implementation": "mlserver_app.Mean",
            "max_batch_size": setup.batch_size, "max_batch_time": setup.delay,
        }  # fmt: skip
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "model-settings.json").write_text(json.dumps(model))
        body = folder / "request.json"
        headers = images.write_json(body)
        process = spawn([self.python().parent / "mlserver", "start", folder], folder, {"PYTHONPATH": str(APPS)})
        marks = ("spawn_main",)
        return Running(process, port, f"/v2/models/{name}/infer", folder / "output.log", marks, headers, body)
