"""TorchServe, the predecessor: Java in front, Python workers. The archive is the one that tsctl serves."""

import json
from pathlib import Path

from tests.lab.benchmarks.models import TYPED, archive
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
        for each in setup.models():
            archive(each, store, setup.batch_size, setup.delay)

    def launch(self, setup: Setup) -> Running:
        python, folder = self.python(), setup.folder
        store = folder / "store"
        archives = [store / f"{each.name}.mar" for each in setup.models()]
        port, name = free_port(), setup.served.name
        model = {
            "defaultVersion": True, "minWorkers": 1, "maxWorkers": 1,
            "batchSize": setup.batch_size, "maxBatchDelay": round(setup.delay * 1000), "responseTimeout": 120,
        }  # fmt: skip
        config = folder / "config.properties"
        config.write_text(
            f"inference_address=http://127.0.0.1:{port}\n"
            f"management_address=http://127.0.0.1:{free_port()}\n"
            f"metrics_address=http://127.0.0.1:{free_port()}\n"
            f"grpc_inference_port={free_port()}\n"
            f"grpc_management_port={free_port()}\n"
            f"load_models={','.join(mar.name for mar in archives)}\n"
            f"models={json.dumps({mar.stem: {'1.0': {**model, 'marName': mar.name}} for mar in archives})}\n"
        )
        command: list[str | Path] = [
            python, "-m", "ts.model_server", "--start", "--foreground", "--ncs", "--disable-token-auth",
            "--model-store", store, "--ts-config", config,
        ]  # fmt: skip
        process = spawn(command, folder, {"TEMP": str(folder), "TMPDIR": str(folder), "LOG_LOCATION": str(folder)})
        target, beside, marks = f"/predictions/{name}", f"/predictions/{setup.beside}", ("model_service_worker",)
        return Running(process, port, target, folder / "output.log", marks, setup.served.headers, beside=beside)

    def suits(self, workload: str) -> bool:
        return super().suits(workload) and workload != TYPED  # it knows no typed handlers
