"""What each optimisation brings here: `python -m tests.lab.gpu.parts [--device cuda:0] [--quick] [--reader]`.

ResNet-50, 224 x 224: copies, the reader, decoding by threads, the model and its CUDA graph, both beside threads that
decode; a batch's stages in a worker's handler, each alone; the compiled model. Prints each line as soon as it is
measured. A part that fails is told, and the others follow; the exit code is 1 then.
"""

import argparse
import copy
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchvision

from tests.lab.benchmarks.weights import photograph
from tests.lab.gpu.bound import graphed, runs_in, seconds
from tests.lab.gpu.loop import load, own_process
from tsctl.handlers.builtin.fast_images import pixel_drift
from tsctl.handlers.builtin.support.pixels import factors, normalised, pixels_of, prepare
from tsctl.handlers.optimize import folding, inductor
from tsctl.handlers.optimize.bfloat16 import Bfloat16
from tsctl.handlers.requests.gpu_copies import to_device
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import IMAGENET

NETWORK, BATCH = "resnet50", 32
STAGES = ("prepare", "preprocess", "inference", "postprocess")
Run = Callable[[], Any]


class Parts:
    """All parts, on one device."""

    def __init__(self, device: torch.device, *, quick: bool) -> None:
        self._device, self._quick, self._cuda = device, quick, device.type == "cuda"
        self._began = time.monotonic()
        self._body = photograph()
        torch.manual_seed(1)
        model = torchvision.models.resnet50().eval()
        folding.fold(model)
        plain = model.to(device, memory_format=torch.channels_last)
        self.models = {"float32": plain, "bf16": Bfloat16(copy.deepcopy(plain)).eval()}

    def note(self, part: str, name: str, value: Any) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {part:10} {name:52} {value}", flush=True)

    def copies(self) -> None:
        """Copies of one batch to the GPU."""
        rows = [torch.ones(3, 224, 224) for _ in range(BATCH)]
        as_bytes = [row.to(torch.uint8) for row in rows]
        ways: dict[str, Run] = {
            "float32, as `torch.stack(rows).to(device)`": lambda: torch.stack(rows).to(self._device),
            "rows of float32, as typed handlers find them": partial(to_device, rows, self._device),
            "rows of uint8, as handlers send them": partial(to_device, as_bytes, self._device),
        }
        for name, run in ways.items():
            self.note("copy", f"ms, {name}", self._ms(run))

    def reader(self) -> None:
        """The reader of `fast_images` beside Pillow, by which it read before: on one thread, in turns."""
        pixels = normalised(self._by_torchvision(), *factors(IMAGENET))
        self.note("reader", "drift beside Pillow", pixel_drift(self._by_pillow(), pixels))
        times: dict[Run, list[float]] = {self._by_pillow: [], self._by_torchvision: []}
        for _ in range(20 if self._quick else 200):
            for run, taken in times.items():
                began = time.thread_time()
                run()
                taken.append(time.thread_time() - began)
        before, now = (1000 * statistics.median(taken) for taken in times.values())
        self.note("reader", "ms of a processor an image: Pillow, torchvision.io", f"{before:.3f} {now:.3f}")
        self.note("reader", "ratio", round(now / before, 2))

    def decoding(self) -> None:
        """Images a second that threads of one process prepare."""
        each, cores = 1.0 if self._quick else 3.0, os.cpu_count() or 1
        for threads in sorted({1, cores // 2 or 1, cores}):
            for name, run in (("Pillow", self._by_pillow), ("torchvision.io to uint8", self._by_torchvision)):
                rate = runs_in(run, threads, each) / each
                self.note("decode", f"images/s, {name}, {threads} threads", round(rate))

    def model(self) -> None:
        """The model, eager and as a CUDA graph, at two batch sizes."""
        for name, model in self.models.items():
            for size in (1, 2) if self._quick else (1, BATCH):
                images = self._images(size)
                with torch.inference_mode():
                    self.note("model", f"ms, {name}, batch {size}", self._ms(partial(model, images)))
                if self._cuda:
                    self.note("model", f"ms, {name}, CUDA graph, batch {size}", self._ms(graphed(model, images)))

    def beside_decoding(self) -> None:
        """A batch while other threads decode, which need the interpreter's lock as well."""
        model, images, turns = self.models["bf16"], self._images(BATCH), 3 if self._quick else 25
        graph = graphed(model, images) if self._cuda else None
        others = (os.cpu_count() or 1) - 1
        for name, decode in (("Pillow", self._by_pillow), ("torchvision.io", self._by_torchvision)):
            stop = threading.Event()
            with ThreadPoolExecutor(max(1, others)) as pool:
                for _ in range(others):
                    pool.submit(_until, stop, decode)
                with torch.inference_mode():
                    beside = f"beside {others} threads of {name}"
                    self.note("GIL", f"ms, batch {BATCH} {beside}", self._ms(partial(model, images), turns))
                if graph is not None:
                    self.note("GIL", f"ms, graph of {BATCH} {beside}", self._ms(graph, turns))
                stop.set()

    def stages(self) -> None:
        """A batch in a worker's handler, each stage alone: read by processes, copied, inferred by a graph, answered."""
        turns = 3 if self._quick else 25
        for name, asked in (("by default", None), ("bf16", ["bf16"]), ("without optimisations", ["none"])):
            with own_process() as process:  # which forks those that read before it calls CUDA
                optimized, times = process.submit(stage_times, str(self._device), asked, turns).result()
            for each, told in optimized.items():
                self.note("stages", f"{name}: {each}", told)
            for stage, time_of_stage in zip(STAGES, times, strict=True):
                self.note("stages", f"ms, batch {BATCH} {name}, {stage}", round(1000 * time_of_stage, 3))

    def compiled(self) -> None:
        """The model as `optimize: compile` runs it."""
        images = self._images(BATCH)
        for name, model in self.models.items():
            began = time.monotonic()
            made = inductor.Compiled(model, self._device).eval()
            with torch.inference_mode():
                made(images)
                self.note("compile", f"s to compile, {name}, batch {BATCH}", round(time.monotonic() - began, 1))
                self.note("compile", f"ms, {name}, batch {BATCH}", self._ms(partial(made, images)))

    def _images(self, size: int) -> torch.Tensor:
        return torch.randn(size, 3, 224, 224, device=self._device)

    def _by_pillow(self) -> Any:
        return prepare(decode_image(self._body))

    def _by_torchvision(self) -> torch.Tensor:
        return pixels_of(self._body, lambda pixels: None)

    def _ms(self, run: Run, turns: int = 0) -> float:
        return round(1000 * seconds(run, self._device, turns or (3 if self._quick else 40)), 3)


def _until(stop: threading.Event, run: Run) -> None:
    while not stop.is_set():
        run()


def stage_times(device: str, asked: Sequence[str] | None, turns: int) -> tuple[dict[str, str], list[float]]:
    """Load the handler in this process, which has not called CUDA.

    Returns:
        What became of each optimisation, and the median time of each of STAGES, until the device has done it.
    """
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        handler, optimized = load(NETWORK, device, BATCH, cores, Path(folder), asked)
    body, times = photograph(), []
    for _ in range(3 + turns):
        value: Any = [{"body": body} for _ in range(BATCH)]
        taken = []
        for stage in STAGES:
            began = time.perf_counter()
            made = getattr(handler, stage)(value)
            if device != "cpu":
                torch.cuda.synchronize(device)
            taken.append(time.perf_counter() - began)
            value = value if stage == "prepare" else made  # which decodes the rows in place
        times.append(taken)
    told = {}
    for each in optimized:
        done = "applied" if each.applied else "not applied"
        drift = "unknown" if each.drift is None else f"{each.drift:.1e}"
        told[each.name] = f"{done}, drift {drift}, {each.seconds:.1f} s {each.reason}"
    return told, [statistics.median(stage) for stage in zip(*times[3:], strict=True)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.gpu.parts", description="Measure each optimisation.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--quick", action="store_true", help="few turns, to see that it runs")
    parser.add_argument("--reader", action="store_true", help="the reader alone")
    given = parser.parse_args(arguments)
    device = torch.device(given.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    print(torch.__version__, name, os.cpu_count(), "cores")
    torch.set_num_threads(1)
    parts = Parts(device, quick=given.quick)
    steps = [parts.reader, parts.decoding, parts.model, parts.beside_decoding, parts.stages]
    if "NULL_CUDA_FOLDER" in os.environ:
        print("compile is left out: Triton loads what it makes by calls of libcuda that null cards lack")
    elif device.type == "cuda":
        steps.append(parts.compiled)
    failed = False
    for step in [parts.reader] if given.reader else [*[parts.copies] * (name != "cpu"), *steps]:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - no reason to lose what the others measure
            parts.note(step.__name__, "failed", f"{type(error).__name__}: {error}".partition("\n")[0])
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
