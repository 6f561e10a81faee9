"""LitServe: uvicorn and FastAPI in front, Python workers."""

from pathlib import Path

from tests.lab.benchmarks.models import app_environment
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

APP = Path(__file__).parent / "apps" / "litserve_app.py"


class LitServe(Packaged):
    name = "litserve"
    packages = ("litserve==0.2.19",)

    def suits(self, workload: str) -> bool:
        return workload == "minilm"  # with the others it was far behind, and was measured no more

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        environment = app_environment(setup.served, setup.batch_size, setup.delay) | {"PORT": str(port)}
        process = spawn([self.python(), APP], setup.folder, environment)
        return Running(process, port, "/predict", setup.folder / "output.log", ("spawn_main",))
