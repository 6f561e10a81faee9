"""The loop without a server: reads the next batches while the model runs this one, on two threads of one process.

    python -m tests.lab.gpu.loop NETWORK DEVICE BATCH

The handler is loaded and optimised as a worker has it. For each number of seconds on stdin, one line with images a
second. The reading thread decodes on all cores, as a worker's does; on the CPU it leaves one for the model.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.benchmarks import models
from tests.places import ROOT

AHEAD = 2  # batches that are read before the model has run them


class Program:
    """A program of this folder in a process of its own, which is told what to do, and answers, line by line."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, line: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """Return the next line that it prints.

        Raises:
            RuntimeError: it ended; the reason is above.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with exit code {self._process.wait()}; see above")
        return line

    def stop(self) -> None:
        self._process.communicate()


def load(network: str, gpu: int | None, batch: int, threads: int, folder: Path) -> Any:
    """Load the archive that is served, and optimise it as its worker does; return the handler."""
    from tsctl.handlers import wire
    from tsctl.handlers.process.threads import set_threads
    from tsctl.handlers.runtime.runtime import Runtime

    (folder / "store").mkdir()
    with zipfile.ZipFile(models.archive(models.resnet(network), folder / "store", batch, 0.01)) as archive:
        archive.extractall(folder / "model")
    manifest = json.loads((folder / "model" / "MAR-INF" / "MANIFEST.json").read_text())
    sys.path.insert(0, str(folder / "model"))
    set_threads(threads)
    order = wire.Load(network, "1.0", str(folder / "model"), "image_classifier", manifest, batch, threads, gpu)
    runtime = Runtime.load(order)
    runtime.optimize(None, folder / "model", batch)
    return runtime.handler


def pipelined(handler: Any, body: bytes, batch: int, readers: int) -> Callable[[float], float]:
    """Start the reading thread; return a function that runs for so many seconds and returns images a second."""
    read: queue.Queue[Any] = queue.Queue(AHEAD)

    def keep_reading() -> None:
        import torch

        torch.set_num_threads(readers)
        while True:
            data: list[Any] = [{"body": body} for _ in range(batch)]
            assert not handler.prepare(data)
            read.put(handler.preprocess(data))

    threading.Thread(target=keep_reading, daemon=True).start()

    def run(seconds: float) -> float:
        batches, began = 0, time.monotonic()
        while time.monotonic() < began + seconds:
            json.dumps(handler.postprocess(handler.inference(read.get())))
            batches += 1
        return batches * batch / (time.monotonic() - began)

    return run


def main(network: str, device: str, batch: int) -> None:
    import torch

    cores = len(os.sched_getaffinity(0))
    gpu = None if device == "cpu" else int(device.removeprefix("cuda:"))
    on_cpu = gpu is None
    with tempfile.TemporaryDirectory() as folder:
        handler = load(network, gpu, batch, cores, Path(folder))
        torch.set_num_threads(max(1, cores - 1) if on_cpu else cores)
        body = (models.MODELS / "photo.jpg").read_bytes()
        run = pipelined(handler, body, batch, 1 if on_cpu else cores)
        run(1.0)
        print("loaded", flush=True)
        for line in sys.stdin:
            print(run(float(line)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
