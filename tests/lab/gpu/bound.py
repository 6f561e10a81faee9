"""What the machine allows: the slowest of decoding, the model on the card, and the bus, each alone.

The loop (loop.py) shares our handler, and its limits. These three share nothing with it:

* decode: JPEG to 224 × 224 pixels of uint8 by torchvision, in processes of four threads, on all cores but two;
* model: its bfloat16 CUDA graph at a batch of 32, the images on the card;
* bus: copies of such batches, uint8, from pinned memory.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.lab.benchmarks import models
from tests.lab.gpu.loop import own_process

if TYPE_CHECKING:
    import torch

BATCH = 32
SPARED = 2  # cores: the daemon's, and that of the thread that feeds the card
THREADS = 4  # of a process: more of them wait for the interpreter's lock. 16 × 1: 4 474 images/s, 4 × 4: 7 542
WARM_UP, SECONDS = 0.1, 3.0
TURNS = 20
RESIZED, CROP = 256, 224  # pixels of the shorter side, and of what is cut from the middle


class Bound(NamedTuple):
    """Images a second of each part alone; `cores` is on how many was decoded."""

    cores: int
    decode: float
    model: float
    bus: float

    @property
    def rate(self) -> float:
        return min(self[1:])


def shares(cores: int) -> list[int]:
    """Return the threads of each process that decodes, where so many cores are there."""
    left = max(1, cores - SPARED)
    count = -(-left // THREADS)
    return [left // count + (number < left % count) for number in range(count)]


def measure(network: str, device: str) -> Bound:
    """Measure all three, the card while nobody decodes.

    Raises:
        RuntimeError: a process ended; the reason is above.
    """
    decoding = shares(len(os.sched_getaffinity(0)))
    models.resnet(network)  # makes the photograph
    with own_process() as process:
        found = process.submit(card, network, device).result()
    with ExitStack() as stack:
        processes = [(stack.enter_context(own_process()), threads) for threads in decoding]
        for seconds in (WARM_UP, SECONDS):
            counts = [process.submit(decoded, threads, seconds) for process, threads in processes]
            images = sum(count.result() for count in counts)
    return Bound(sum(decoding), images / SECONDS, found["model"], found["bus"])


def decoded(threads: int, seconds: float) -> int:
    """Return how many images threads of this process prepare within so many seconds."""
    return runs_in(decoder((models.MODELS / "photo.jpg").read_bytes()), threads, seconds)


def decoder(body: bytes) -> Callable[[], Any]:
    """Return what prepares an image once."""
    import torch
    from torch.nn.functional import interpolate
    from torchvision.io import ImageReadMode, decode_jpeg

    file = torch.frombuffer(bytearray(body), dtype=torch.uint8)

    def decode() -> torch.Tensor:
        pixels = decode_jpeg(file, mode=ImageReadMode.RGB)
        height, width = pixels.shape[-2:]
        scale = RESIZED / min(height, width)
        size = (round(height * scale), round(width * scale))
        pixels = interpolate(pixels[None], size, mode="bilinear", antialias=True)[0]
        top, left = (size[0] - CROP) // 2, (size[1] - CROP) // 2
        return pixels[:, top : top + CROP, left : left + CROP].contiguous()

    return decode


def runs_in(run: Callable[[], Any], threads: int, seconds: float) -> int:
    """Return how often threads, of one core each for torch, run a function within so many seconds."""
    import torch

    end = time.perf_counter() + seconds

    def work(_: int) -> int:
        torch.set_num_threads(1)
        count = 0
        while time.perf_counter() < end:
            run()
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads)))


def card(network: str, name: str) -> dict[str, float]:
    """Return images a second of the model's graph, and of the bus."""
    import torch
    import torchvision

    from tsctl.handlers.optimize import folding

    device = torch.device(name)
    torch.cuda.set_device(device)
    model = getattr(torchvision.models, network)().eval()
    folding.fold(model)
    model = model.to(device, torch.bfloat16, memory_format=torch.channels_last)
    images = torch.zeros(BATCH, 3, CROP, CROP, device=device, dtype=torch.bfloat16)
    images = images.to(memory_format=torch.channels_last)
    graph = graphed(model, images)
    there = torch.empty(BATCH, 3, CROP, CROP, device=device, dtype=torch.uint8)
    pinned = torch.zeros(there.shape, dtype=torch.uint8).pin_memory()
    runs = {"model": graph, "bus": lambda: there.copy_(pinned, non_blocking=True)}
    return {name: BATCH / seconds(run, device) for name, run in runs.items()}


def graphed(model: "Callable[[torch.Tensor], Any]", images: "torch.Tensor") -> Callable[[], Any]:
    """Capture the model on these images; return what replays it."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):
            model(images)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        model(images)
    return graph.replay


def seconds(run: Callable[[], Any], device: "torch.device", turns: int = TURNS) -> float:
    """Return the median time of a run, until the device has done it."""
    import torch

    wait = partial(torch.cuda.synchronize, device) if device.type == "cuda" else bool
    times = []
    for _ in range(3 + turns):
        wait()
        began = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - began)
    return median(times[3:])
