"""The loop without a server: reads the next batches while the model runs this one, on two threads of one process.

The handler is loaded and optimised as a worker has it. The reading thread decodes on all cores, as a worker's does; on
the CPU it leaves one for the model.
"""

import json
import os
import queue
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab.benchmarks import models

if TYPE_CHECKING:
    from tsctl.handlers import wire

AHEAD = 2  # batches that are read before the model has run them


def own_process() -> ProcessPoolExecutor:
    """Return a process that shares nothing with this one, and runs in turn what it is told to, until the block ends.

    One that ends before raises BrokenProcessPool, a RuntimeError, where its result is asked for.
    """
    return ProcessPoolExecutor(1, get_context("spawn"))


def load(
    network: str, device: str, batch: int, threads: int, folder: Path, asked: Sequence[str] | None = None
) -> "tuple[Any, list[wire.Optimized]]":
    """Load the archive that is served, and optimise it as its worker does.

    Args:
        device: `cpu` or `cuda:N`.
        folder: empty.
        asked: of `optimize` in model-config.yaml; None for the defaults.

    Returns:
        The handler, and what became of each optimisation.
    """
    from tsctl.handlers import wire
    from tsctl.handlers.process.threads import set_threads
    from tsctl.handlers.runtime.runtime import Runtime

    (folder / "store").mkdir()
    with zipfile.ZipFile(models.archive(models.resnet(network), folder / "store", batch, 0.01)) as archive:
        archive.extractall(folder / "model")
    manifest = json.loads((folder / "model" / "MAR-INF" / "MANIFEST.json").read_text())
    sys.path.insert(0, str(folder / "model"))
    set_threads(threads)
    gpu = None if device == "cpu" else int(device.removeprefix("cuda:"))
    order = wire.Load(network, "1.0", str(folder / "model"), "image_classifier", manifest, batch, threads, gpu)
    runtime = Runtime.load(order)
    optimized = runtime.optimize(asked, folder / "model", batch)
    return runtime.handler, optimized


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


@cache
def started(network: str, device: str, batch: int, folder: Path) -> Callable[[float], float]:
    """Load the handler in this process, for all of its life, and warm it up; return what `pipelined` does."""
    import torch

    cores = len(os.sched_getaffinity(0))
    on_cpu = device == "cpu"
    handler, _ = load(network, device, batch, cores, folder)
    torch.set_num_threads(max(1, cores - 1) if on_cpu else cores)
    body = (models.MODELS / "photo.jpg").read_bytes()
    run = pipelined(handler, body, batch, 1 if on_cpu else cores)
    run(1.0)
    return run


def rate(network: str, device: str, batch: int, folder: Path, seconds: float) -> float:
    """Run the loop for so many seconds; return images a second.

    Args:
        folder: for the archive; empty when it is called for the first time.
    """
    return started(network, device, batch, folder)(seconds)
