"""TorchServe, the predecessor: Java in front, Python workers. The archive is the one that tsctl serves."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.environments import Missing
from tests.lab.benchmarks.models import archive
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

PACKAGES = (
    "torchserve==0.12.0",
    "captum",            # its vision and text handlers import it, and its requirements do not say so
    "packaging",
    "numpy",
    "pyyaml",
)  # fmt: skip
JAVA = 17


def require_java() -> None:
    """Raises: Missing, if TorchServe would find no runtime."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr if java else "nothing"
    match = re.search(r'version "(\d+)', said)
    if match is None or int(match[1]) < JAVA:
        raise Missing(
            f"TorchServe needs a Java {JAVA} runtime, on Debian openjdk-{JAVA}-jre-headless; `java -version` says: "
            f"{said.strip().partition(chr(10))[0]}"
        )


class TorchServe(Packaged):
    name = "torchserve"
    packages = PACKAGES

    def install(self) -> str:
        require_java()
        return super().install()

    def launch(self, setup: Setup) -> Running:
        python, folder, store = self.python(), setup.folder, setup.folder / "store"
        store.mkdir()
        archive(setup.served, store, setup.batch_size, setup.delay)
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
        environment = {"TEMP": str(folder), "TMPDIR": str(folder), "LOG_LOCATION": str(folder)}
        return spawn(setup, command, environment, port, f"/predictions/{name}", "model_service_worker")
