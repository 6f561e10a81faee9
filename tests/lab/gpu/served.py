"""The same network behind a real daemon: one worker, on the device, reading ahead as on a GPU by default."""

import subprocess
import sys
from pathlib import Path

from tests.lab.benchmarks import models
from tests.lab.benchmarks.environments import ROOT
from tests.lab.benchmarks.peers.ours import ROUGH, daemon_command
from tests.lab.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn

QUEUE = 1000  # requests: more than there are clients, of whom none is to be rejected
DELAY = 0.010  # seconds that a request may wait for a batch


class OnDevice(Peer):
    """The daemon.

    Args:
        device: `cpu` or `cuda:N`.
        further: lines of model-config.yaml.
    """

    name = "tsctl"
    tolerance = ROUGH  # of a probability: convolutions on a GPU use TF32

    def __init__(self, device: str, further: str = "") -> None:
        self._device = device
        self._further = further

    def install(self) -> str:
        return "the working tree"

    def launch(self, setup: Setup) -> Running:
        store = setup.folder / "store"
        store.mkdir()
        # A worker on the CPU reads ahead only if it is asked to: so both devices are served in the same way.
        further = f"pipeline: true\njobQueueSize: {QUEUE}\n{self._further}"
        if self._device != "cpu":
            further += f"deviceIds: [{self._device.removeprefix('cuda:')}]\n"
        mar = models.archive(setup.served, store, setup.batch_size, setup.delay, further)
        port = free_port()
        command = daemon_command([sys.executable], setup, [mar], port)
        process = spawn(command, setup.folder, {"TSCTL_SOCKET": str(setup.folder / "s")})
        return Running(process, port, f"/predictions/{setup.served.name}", setup.folder / "output.log", ("handlers",))


def start(network: str, device: str, batch: int, folder: Path, further: str = "") -> Running:
    """Start the daemon, and wait until it answers rightly.

    Raises:
        DidNotStart: it does not in time.
    """
    peer = OnDevice(device, further)
    served = models.resnet(network).within(peer.tolerance)
    return peer.start(Setup(served, folder, batch, DELAY))


def doctor() -> str:
    """Return what `tsctl doctor` says about GPUs: its line."""
    command = [sys.executable, "-c", "from tsctl.cli import main; main()", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if line.lstrip().startswith("GPU")]
    return lines[0] if lines else f"`tsctl doctor` ended with exit code {done.returncode}: {done.stderr.strip()}"
