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
        for served in setup.served.all:
            archive(served, store, setup.batch_size, setup.delay, plain=True)  # it knows no typed handlers

    def launch(self, setup: Setup) -> Running:
        python, folder = self.python(), setup.folder
        store = folder / "store"
        port, name, slow = free_port(), setup.served.name, setup.served.beside
        names = [served.name for served in setup.served.all]
        model = {
            "defaultVersion": True, "minWorkers": 1, "maxWorkers": 1,
            "batchSize": setup.batch_size, "maxBatchDelay": round(setup.delay * 1000), "responseTimeout": 120,
        }  # fmt: skip
        models = {each: {"1.0": model | {"marName": f"{each}.mar"}} for each in names}
        config = folder / "config.properties"
        config.write_text(
            f"inference_address=http://127.0.0.1:{port}\n"
            f"management_address=http://127.0.0.1:{free_port()}\n"
            f"metrics_address=http://127.0.0.1:{free_port()}\n"
            f"grpc_inference_port={free_port()}\n"
            f"grpc_management_port={free_port()}\n"
            f"load_models={','.join(f'{each}.mar' for each in names)}\n"
            f"models={json.dumps(models)}\n"
        )
        command: list[str | Path] = [
            python, "-m", "ts.model_server", "--start", "--foreground", "--ncs", "--disable-token-auth",
            "--model-store", store, "--ts-config", config,
        ]  # fmt: skip
        process = spawn(command, folder, {"TEMP": str(folder), "TMPDIR": str(folder), "LOG_LOCATION": str(folder)})
        return Running(
            process, port, f"/predictions/{name}", folder / "output.log", ("model_service_worker",),
            setup.served.headers, slow=f"/predictions/{slow.name}" if slow else "",
        )  # fmt: skip
