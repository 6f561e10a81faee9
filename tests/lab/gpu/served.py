"""A network behind a real daemon: one worker, on the device, reading ahead as on a GPU by default; and its load."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import NamedTuple

from tests.lab.benchmarks import models
from tests.lab.benchmarks.peers.ours import ROUGH, Ours
from tests.lab.benchmarks.peers.peer import DELAY, Running
from tests.places import ROOT
from tsctl.generator import generator

QUEUE = 1000  # requests: more than there are clients, of whom none is to be rejected
BUSY = ("--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits", "--loop-ms=500")


@contextmanager
def serving(network: str, device: str, batch: int, further: str = "") -> Iterator[Running]:
    """Run the daemon while the block runs; it has answered rightly.

    Args:
        device: `cpu` or `cuda:N`.
        further: lines of model-config.yaml.

    Raises:
        DidNotStart: it does not in time.
    """
    # A worker on the CPU reads ahead only if it is asked to: so both devices are served in the same way.
    further += f"pipeline: true\njobQueueSize: {QUEUE}\n"
    if device != "cpu":
        further += f"deviceIds: [{device.removeprefix('cuda:')}]\n"
    peer = Ours(further=further)
    peer.tolerance = ROUGH  # convolutions on a GPU use TF32
    with peer.running(peer.adapt(models.resnet(network)), batch, DELAY) as running:
        yield running


class Load(NamedTuple):
    """The results of a closed loop of clients; latencies in seconds.

    Attributes:
        rate: good answers a second.
        errors: requests without a good answer.
        busy: the mean share of the time in which a kernel ran, in percent; None where no program tells.
    """

    rate: float
    errors: int
    p50: float
    p99: float
    busy: float | None = None

    @property
    def busy_text(self) -> str:
        return "not read" if self.busy is None else f"{self.busy:.0f} % busy"


def load(running: Running, network: str, clients: int, seconds: float, device: str = "") -> Load:
    """Ask for so many seconds by the load generator of `tsctl bench`, over connections that stay.

    Args:
        device: `cuda:N` is watched meanwhile.

    Raises:
        CliError: the first request failed, or the generator did.
    """
    order = {"host": "127.0.0.1", "port": running.port, "target": running.target}
    order |= {"connections": clients, "seconds": seconds}
    body = models.resnet(network).body.read_bytes()
    with watched(device.removeprefix("cuda:")) as busy, generator(order, body) as asking:
        *_, last = asking.events()
    times = last["latency"]
    return Load(last["requestsPerSecond"], last["errors"], times["p50"], times["p99"], fmean(busy) if busy else None)


@contextmanager
def watched(index: str) -> Iterator[list[float]]:
    """Read how busy the GPU of this index is while the block runs, by `nvidia-smi`; the readings are there after it."""
    readings: list[float] = []
    program = shutil.which("nvidia-smi") if index else None
    if program is None:
        yield readings
        return
    with subprocess.Popen([program, *BUSY], stdout=subprocess.PIPE, text=True) as reading:
        try:
            yield readings
        finally:
            reading.terminate()
            rows = [[word.strip() for word in line.split(",")] for line in reading.communicate()[0].splitlines()]
            readings += [float(row[1]) for row in rows if row[0] == index and row[-1].isdigit()]


def doctor() -> str:
    """Return what `tsctl doctor` says about GPUs: its line."""
    command = [sys.executable, "-m", "tsctl", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if line.lstrip().startswith("GPU")]
    return lines[0] if lines else f"`tsctl doctor` ended with exit code {done.returncode}: {done.stderr.strip()}"
