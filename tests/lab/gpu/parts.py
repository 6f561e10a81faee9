"""What each optimisation brings here: `python -m tests.lab.gpu.parts [--device cuda:0] [--quick] [--no-compile]`.

ResNet-50, 224 x 224: copies, the reader, decoding by threads, the model and its CUDA graph, both beside threads that
decode, and the compilers. Prints each line as soon as it is measured; OUT names a folder for all of them as JSON.
"""

import argparse
import copy
import io
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchvision
from PIL import Image
from sklearn import datasets
from torchvision.io import ImageReadMode, decode_jpeg

from tests.lab.gpu.bound import graphed, runs_in
from tsctl.handlers.builtin.fast_images import pixel_drift
from tsctl.handlers.builtin.support.pixels import factors, normalised, pixels_of, prepare
from tsctl.handlers.optimize import folding
from tsctl.handlers.optimize.bfloat16 import Bfloat16
from tsctl.handlers.optimize.inductor import Compiled, compile_sizes
from tsctl.handlers.requests.gpu_copies import to_device
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import IMAGENET

Run = Callable[[], Any]
TODAY, HALVED = "fold + channels_last (today's defaults)", "today's + bf16"


class Parts:
    """All parts, on one device.

    Attributes:
        found: part → name → value.
    """

    def __init__(self, device: torch.device, *, quick: bool) -> None:
        self._device, self._quick, self._cuda = device, quick, device.type == "cuda"
        self._began = time.time()
        self._cores = os.cpu_count() or 1
        self.found: dict[str, dict[str, Any]] = {}
        torch.manual_seed(1)
        self._plain = torchvision.models.resnet50().eval().to(device)
        self._models = {"eager": self._plain, TODAY: self._today(), HALVED: self._halved()}
        self._body = photograph()
        self._factors = [each.to(device) for each in factors(IMAGENET)]
        self._raw = torch.frombuffer(bytearray(self._body), dtype=torch.uint8)

    def note(self, part: str, name: str, value: Any) -> None:
        self.found.setdefault(part, {})[name] = value
        print(f"{time.time() - self._began:6.1f} s  {part:10} {name:52} {value}", flush=True)

    def copies(self) -> None:
        """Copies of one batch of 32 to the GPU."""
        for name, dtype in (("float32, 19.3 MB", torch.float32), ("uint8, 4.8 MB", torch.uint8)):
            page = torch.ones(32, 3, 224, 224).to(dtype)
            pinned, place = page.pin_memory(), torch.empty_like(page, device=self._device)
            self.note("copy", f"{name}, pageable .to(device)", self._ms(partial(page.to, self._device)))
            self.note(
                "copy", f"{name}, pinned copy_(non_blocking)", self._ms(partial(place.copy_, pinned, non_blocking=True))
            )
        rows = [torch.ones(3, 224, 224) for _ in range(32)]
        self.note("copy", "torch.stack of 32 float32 images (CPU)", self._ms(partial(torch.stack, rows)))
        as_bytes = [row.to(torch.uint8) for row in rows]
        self.note(
            "copy", "32 rows of uint8, as handlers send them", self._ms(partial(to_device, as_bytes, self._device))
        )

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
        before, now = (statistics.median(taken) for taken in times.values())
        self.note("reader", "ms of a processor an image, by Pillow", round(1000 * before, 3))
        self.note("reader", "ms of a processor an image, by torchvision.io", round(1000 * now, 3))
        self.note("reader", "ratio", round(now / before, 2))

    def decoding(self) -> None:
        """Images a second that threads of one process prepare, and a batch by nvJPEG."""
        for threads in sorted({1, 4, self._cores // 2 or 1, self._cores}):
            for name, run in (("Pillow as today", self._by_pillow), ("torchvision.io to uint8", self._by_torchvision)):
                self.note("decode", f"images/s, {name}, {threads} threads", self._rate(run, threads))
        if self._cuda:
            batch = [self._raw.clone() for _ in range(32)]
            run = partial(decode_jpeg, batch, mode=ImageReadMode.RGB, device=self._device)
            self._try("decode", "nvJPEG, decode_jpeg(32, device=cuda), ms", partial(self._ms, run))

    def model(self) -> None:
        """The model at each batch size, eager and as a CUDA graph; `launch` is the calling thread's time alone."""
        for name, model in self._models.items():
            for size in (1, 2) if self._quick else (1, 4, 8, 16, 32, 64):
                images = self._images(size)
                with torch.inference_mode():
                    self.note("model", f"{name}, batch {size}", self._ms(partial(model, images)))
                    self.note("launch", f"{name}, batch {size}", self._launch_ms(partial(model, images)))
        if self._cuda:
            torch.set_float32_matmul_precision("high")
            for name in (TODAY, HALVED):
                for size in (1, 8, 32):
                    self._try("model", f"{name}, CUDA graph, batch {size}", partial(self._graph_ms, name, size))
            for size in (1, 32):
                self._try("model", f"{HALVED}, graph from pixels to classes, {size}", partial(self._whole_ms, size))
                self._try("model", f"{HALVED}, the same around the graph, {size}", partial(self._around_ms, size))

    def beside_decoding(self) -> None:
        """A batch of 32 while other threads decode, which need the interpreter's lock as well."""
        model, images, turns = self._models[HALVED], self._images(32), 3 if self._quick else 25
        graph = self._graph(model, 32) if self._cuda else None
        for label, decode in (("Pillow", self._by_pillow), ("torchvision.io", self._by_torchvision)):
            for others in (0, self._cores // 2, self._cores - 1):
                stop = threading.Event()
                threads = [threading.Thread(target=_until, args=(stop, decode)) for _ in range(others)]
                for thread in threads:
                    thread.start()
                beside = f"beside {others} threads of {label}: ms"
                with torch.inference_mode():
                    self.note("GIL", f"batch 32 eager {beside}", self._ms(partial(model, images), turns))
                if graph is not None:
                    self.note("GIL", f"batch 32 graph {beside}", self._ms(graph, 10))
                stop.set()
                for thread in threads:
                    thread.join()

    def compilers(self) -> None:
        """What tsctl's `compile` and torch.compile bring, and how long they take."""
        for name, make in (("tsctl's Compiled, float32", self._today), ("tsctl's Compiled, bf16", self._halved)):
            self._try("compile", f"{name}: s to compile", partial(self._compiled, name, make))
        for mode in ("default", "reduce-overhead"):
            self._try("compile", f"{mode}: s to compile two sizes", partial(self._by_torch, mode))
        self.note("memory", "reserved by torch, MiB", torch.cuda.memory_reserved(self._device) >> 20)
        self.note("memory", "peak allocated, MiB", torch.cuda.max_memory_allocated(self._device) >> 20)

    def _compiled(self, name: str, make: Callable[[], torch.nn.Module]) -> float:
        began = time.time()
        compiled = Compiled(make(), self._device).eval()
        with torch.inference_mode():
            compile_sizes(compiled, lambda size: compiled(self._images(size)), 32)
            took = round(time.time() - began, 1)
            for size in (1, 8, 32):
                images = self._images(size)
                self.note("model", f"{name}, batch {size}", self._ms(partial(compiled, images)))
        return took

    def _by_torch(self, mode: str) -> float:
        began = time.time()
        compiled = torch.compile(self._today().to(torch.bfloat16), mode=mode, dynamic=False)
        for size in (8, 32):
            images = self._images(size).to(torch.bfloat16).to(memory_format=torch.channels_last)
            with torch.inference_mode():
                compiled(images)
                compiled(images)
                self.note(
                    "model", f"torch.compile {mode}, bf16, static, batch {size}", self._ms(partial(compiled, images))
                )
        return round(time.time() - began, 1)

    def _try(self, part: str, name: str, run: Run) -> None:
        """Note the value, or why there is none: a part that fails is no reason to lose the others."""
        try:
            value = run()
        except Exception as error:  # noqa: BLE001 - whatever a driver or a compiler raises
            value = f"{type(error).__name__}: {str(error)[:100]}"
        self.note(part, name, value)

    def _today(self) -> torch.nn.Module:
        model: torch.nn.Module = copy.deepcopy(self._plain)
        folding.fold(model)
        return model.to(memory_format=torch.channels_last)

    def _halved(self) -> torch.nn.Module:
        return Bfloat16(self._today()).eval()

    def _images(self, size: int) -> torch.Tensor:
        return torch.randn(size, 3, 224, 224, device=self._device)

    def _graph_ms(self, name: str, size: int) -> float:
        return self._ms(self._graph(self._models[name], size))

    def _graph(self, model: torch.nn.Module, size: int) -> Run:
        return graphed(model, self._images(size))

    def _whole_ms(self, size: int) -> float:
        """A graph that normalises pixels, runs the model, and chooses the best classes."""
        model = self._models[HALVED]
        return self._ms(graphed(lambda pixels: best(model(self._normalised(pixels))), self._pixels(size)))

    def _around_ms(self, size: int) -> float:
        """The same work, of which the graph has the model alone: this thread starts what is before and after it."""
        images, pixels = self._images(size), self._pixels(size)
        graph, output = graphed(self._models[HALVED], images), torch.randn(size, 1000, device=self._device)

        def run() -> None:
            images.copy_(self._normalised(pixels))
            graph()
            best(output)

        return self._ms(run)

    def _pixels(self, size: int) -> torch.Tensor:
        return torch.zeros(size, 3, 224, 224, dtype=torch.uint8, device=self._device)

    def _normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        return normalised(pixels, *self._factors)

    def _by_pillow(self) -> Any:
        return prepare(decode_image(self._body))

    def _by_torchvision(self) -> torch.Tensor:
        return pixels_of(self._body, lambda pixels: None)

    def _rate(self, run: Run, threads: int) -> int:
        seconds = 1.0 if self._quick else 3.0
        return round(runs_in(run, threads, seconds) / seconds)

    def _ms(self, run: Run, turns: int = 0) -> float:
        """Return the median milliseconds of a run, until the GPU has done it."""
        for _ in range(3):
            run()
        return self._median(run, turns, waits=True)

    def _launch_ms(self, run: Run) -> float:
        return self._median(run, 0, waits=False)

    def _median(self, run: Run, turns: int, *, waits: bool) -> float:
        times = []
        for _ in range(turns or (3 if self._quick else 40)):
            self._synchronize()
            began = time.perf_counter()
            run()
            if waits:
                self._synchronize()
            times.append(1000 * (time.perf_counter() - began))
        return round(statistics.median(times), 3)

    def _synchronize(self) -> None:
        if self._cuda:
            torch.cuda.synchronize(self._device)


def best(output: torch.Tensor) -> torch.Tensor:
    """Return what `image_classifier` makes of a model's output."""
    scores, classes = torch.topk(torch.softmax(output, dim=1), 5, dim=1)
    return torch.stack((scores.to(torch.float64), classes.to(torch.float64)), dim=1)


def photograph() -> bytes:
    """Return a JPEG of 500 x 375 pixels."""
    file = io.BytesIO()
    image = Image.open(Path(datasets.__file__).parent / "images" / "flower.jpg")
    image.resize((500, 375)).save(file, "JPEG", quality=90)
    return file.getvalue()


def _until(stop: threading.Event, run: Run) -> None:
    while not stop.is_set():
        run()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.gpu.parts", description="Measure each optimisation.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--quick", action="store_true", help="few turns, to see that it runs")
    parser.add_argument("--reader", action="store_true", help="the reader alone")
    parser.add_argument("--no-compile", action="store_true", help="without the compilers")
    given = parser.parse_args(arguments)
    device = torch.device(given.device)
    cuda = device.type == "cuda"
    print(torch.__version__, torch.cuda.get_device_name(device) if cuda else "cpu", os.cpu_count(), "cores")
    torch.set_num_threads(1)
    parts = Parts(device, quick=given.quick)
    steps: list[Run] = [parts.copies] if cuda else []
    steps += [parts.reader, parts.decoding, parts.model, parts.beside_decoding]
    steps += [parts.compilers] if cuda and not given.no_compile else []
    if given.reader:
        steps = [parts.reader]
    for step in steps:
        step()
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "parts.json").write_text(json.dumps(parts.found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
