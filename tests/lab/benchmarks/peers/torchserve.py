"""TorchServe, the predecessor: Java in front, Python workers. The archive is the one that tsctl serves."""

import json
from pathlib import Path

from tests.lab.benchmarks.models import archive
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn
from tests.lab.conformance.environment import PACKAGES, require_java


class TorchServe(Packaged):
    name = "torchserve"
    packages = PACKAGES

    def install(self) -> str:
        require_java()
        return super().install()

    def prepare(self, setup: Setup) -> None:
        store = setup.folder / "store"
        store.mkdir()
        archive(setup.served, store, setup.batch_size, setup.delay)

    def launch(self, setup: Setup) -> Running:
        python, folder = self.python(), setup.folder
        store = folder / "store"
        port, name = free_port(), setup.served.name
        model = {
            "defaultVersion": True, "marName": f"{name}.mar", "minWorkers": 1, "maxWorkers": 1,
            "batchSize": setup.batch_size, "maxBatchDelay": round(setup.delay * 1000), "responseTimeout": 120,
        }  # fmt: skip
        config = folder / "config.properties"
        config.write_text(
            f"inference_address=http://127.0.0.1:{port}\n"
            f"management_address=http://127.0.0.1:{free_port()}\n"
            f"metrics_address=http://127.0.0.1:{free_port()}\n"
            f"grpc_inference_port={free_port()}\n"
            f"grpc_management_port={free_port()}\n"
            f"load_models={name}.mar\n"
            f"models={json.dumps({name: {'1.0': model}})}\n"
        )
        command: list[str | Path] = [
            python, "-m", "ts.model_server", "--start", "--foreground", "--ncs", "--disable-token-auth",
            "--model-store", store, "--ts-config", config,
        ]  # fmt: skip
        process = spawn(command, folder, {"TEMP": str(folder), "TMPDIR": str(folder), "LOG_LOCATION": str(folder)})
        return Running(process, port, f"/predictions/{name}", folder / "output.log", ("model_service_worker",))
