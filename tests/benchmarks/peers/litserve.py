"""LitServe: uvicorn and FastAPI in front, Python workers."""

from pathlib import Path

from tests.benchmarks.environments import environment, version_in
from tests.benchmarks.models import app_environment
from tests.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn

APP = Path(__file__).parent / "apps" / "litserve_app.py"


class LitServe(Peer):
    name = "litserve"

    def __init__(self) -> None:
        self._packages = ("litserve==0.2.19",)

    def install(self) -> str:
        return version_in(self._python(), self.name)

    def _python(self) -> Path:
        return environment(self.name, self._packages)

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        environment = app_environment(setup.served, setup.batch_size, setup.delay) | {"PORT": str(port)}
        process = spawn([self._python(), APP], setup.folder, environment)
        return Running(process, port, "/predict", setup.folder / "output.log", ("spawn_main",))
