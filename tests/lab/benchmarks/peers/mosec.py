"""mosec: Rust in front, Python workers."""

from pathlib import Path

from tests.lab.benchmarks.models import app_environment
from tests.lab.benchmarks.peers.peer import Packaged, Running, Setup, free_port, spawn

APP = Path(__file__).parent / "apps" / "mosec_app.py"


class Mosec(Packaged):
    name = "mosec"
    packages = ("mosec==0.9.8",)

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        options = ("--address", "127.0.0.1", "--port", str(port), "--timeout", "120000")
        environment = app_environment(setup.served, setup.batch_size, setup.delay)
        process = spawn([self.python(), APP, *options], setup.folder, environment)
        return Running(process, port, "/inference", setup.folder / "output.log", ("spawn_main",))
