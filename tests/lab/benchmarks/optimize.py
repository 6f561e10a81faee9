"""The gain of each optimisation: `python -m tests.lab.benchmarks.optimize [MODEL …] [--rounds N]`.

Everything in this process, without a server: `image_classifier` answers batches of eight JPEGs of 500 × 375
pixels, decoding included, with two intra-op threads and random weights. All variants are loaded first,
each as a worker loads it; then they take turns, and the medians of the rounds are printed. `drift` is what
the check at the load found for the variant's last optimisation: max |difference| ÷ max |plain output|.

On a machine that is busy with other things, `--threads 1 --cpu-time` counts images by second of CPU.
"""

import argparse
import io
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image

from handlers import wire
from handlers.builtin import fast_images
from handlers.builtin.image_classifier import ImageClassifier, middle
from handlers.builtin.support.decoders import Decoders
from handlers.builtin.support.example_image import example_image
from handlers.optimize import bfloat16
from handlers.optimize.apply import optimize
from handlers.optimize.int8 import model as int8
from handlers.sdk.context import Context

BATCH = 8
MODEL_FILE = "import torchvision\nclass Net(torchvision.models.ResNet):\n    def __init__(self):\n        {body}\n"
MODELS = {
    "resnet18": "super().__init__(torchvision.models.resnet.BasicBlock, [2, 2, 2, 2])",
    "resnet50": "super().__init__(torchvision.models.resnet.Bottleneck, [3, 4, 6, 3])",
    "resnet152": "super().__init__(torchvision.models.resnet.Bottleneck, [3, 8, 36, 3])",
}
VARIANTS = {
    "plain": "none",
    "fast_images": "none,fast_images",
    "channels_last": "none,channels_last",
    "fold": "none,fold",
    "the default": "",
    "compile": "compile",
    "bf16": "bf16",
    "bf16,compile": "bf16,compile",
    "int8": "int8",
}


class Loaded(NamedTuple):
    handler: ImageClassifier
    context: Context
    reports: list[wire.Optimized]
    seconds: float


def archive(directory: Path, model: str) -> dict[str, Any]:
    """Write a model's file and random weights; give its manifest."""
    (directory / "net.py").write_text(MODEL_FILE.format(body=MODELS[model]))
    names: dict[str, Any] = {}
    exec((directory / "net.py").read_text(), names)
    torch.manual_seed(0)
    torch.save(names["Net"]().state_dict(), directory / "net.pth")
    (directory / "index_to_name.json").write_text(json.dumps({str(number): f"c{number}" for number in range(1000)}))
    return {"model": {"modelFile": "net.py", "serializedFile": "net.pth"}}


def load(directory: Path, manifest: dict[str, Any], asked: str) -> Loaded:
    began = time.perf_counter()
    context = Context("net", str(directory), manifest, BATCH)
    handler = ImageClassifier()
    handler.initialize(context)
    context.begin_batch([str(row) for row in range(BATCH)], [{}] * BATCH)
    reports = optimize(handler, tuple(asked.split(",")) if asked else None, directory, {}, BATCH)
    return Loaded(handler, context, reports, time.perf_counter() - began)


def answer(loaded: Loaded, body: bytes) -> list[dict[str, float]]:
    data = [{"body": body} for _ in range(BATCH)]
    loaded.handler.prepare(data)
    result: list[dict[str, float]] = loaded.handler.handle(data, loaded.context)
    return result


def measure(model: str, rounds: int, clock: Callable[[], float], chosen: Sequence[str]) -> None:
    """Print the table of one model; without chosen variants, of all."""
    body = example_image()
    with tempfile.TemporaryDirectory() as folder:
        manifest = archive(Path(folder), model)
        variants = {}
        for name, asked in VARIANTS.items():
            if chosen and name not in {"plain", *chosen}:
                continue
            if "bf16" in name and bfloat16.refusal(torch.device("cpu")):
                continue
            if name == "int8" and int8.refusal(torch.nn.Identity(), torch.device("cpu")):
                continue
            variants[name] = load(Path(folder), manifest, asked)
            print(f"{model}: {name} is loaded", file=sys.stderr)
        expected = list(answer(variants["plain"], body)[0])
        rates: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, loaded in variants.items():
                began = clock()
                answer(loaded, body)
                rates[name].append(BATCH / (clock() - began))
        print(f"\n| {model} | images/s | × plain | drift | best class kept | load | five best |")
        print("|---|---|---|---|---|---|---|")
        plain = statistics.median(rates["plain"])
        for name, loaded in variants.items():
            rate = statistics.median(rates[name])
            # Ratios within a round: what else the machine does hits its neighbours, too.
            ratio = statistics.median(mine / base for mine, base in zip(rates[name], rates["plain"], strict=True))
            drifts = [report.drift for report in loaded.reports if report.applied]
            drift = f"{drifts[-1]:.0e}" if drifts else "–"
            agreed = [f"{report.agreement:.1%}" for report in loaded.reports if report.agreement is not None]
            kept = agreed[-1] if agreed else "–"
            best = "same" if list(answer(loaded, body)[0]) == expected else "differ"
            print(f"| {name} | {rate:.1f} | {ratio:.2f} | {drift} | {kept} | {loaded.seconds:.1f} s | {best} |")
        print(f"({rounds} rounds, plain {plain:.1f} images/s)", flush=True)


def image_costs() -> None:
    """Print what one image costs before the model, on one thread."""
    torch.set_num_threads(1)
    body = example_image()
    image = Image.open(io.BytesIO(body))
    image.load()
    ways: dict[str, Callable[[], object]] = {
        "decode": lambda: Image.open(io.BytesIO(body)).load(),
        "usual transforms": lambda: ImageClassifier.image_processing(image),
        "fast_images": lambda: fast_images.prepare(middle(image)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(50):
        for name, way in ways.items():
            began = time.process_time()
            way()
            times[name].append((time.process_time() - began) * 1000)
    line(times)


def batch_costs(threads: int) -> None:
    """Print what decoding a batch takes on one thread and on several, by the clock on the wall."""
    handler, body = ImageClassifier(), example_image()
    fast_images.use(handler)
    decoders = Decoders()
    ways = {"a batch on one thread": 1, f"on {threads}": threads}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(30):
        for name, count in ways.items():
            torch.set_num_threads(count)
            began = time.perf_counter()
            list(decoders.map(handler.decode_row, [{"body": body}] * BATCH))
            times[name].append((time.perf_counter() - began) * 1000)
    line(times)


def line(times: dict[str, list[float]]) -> None:
    print(", ".join(f"{name} {statistics.median(each):.2f} ms" for name, each in times.items()), flush=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Measure what each optimisation is worth.")
    parser.add_argument("models", nargs="*", default=["resnet18", "resnet152"], metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--variant", action="append", default=[], choices=VARIANTS, help="Only this one and plain; may be repeated."
    )
    parser.add_argument("--cpu-time", action="store_true", help="Count seconds of CPU.")
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    image_costs()
    batch_costs(2)
    torch.set_num_threads(given.threads)
    for model in given.models:
        measure(model, given.rounds, time.process_time if given.cpu_time else time.perf_counter, given.variant)


if __name__ == "__main__":
    main(sys.argv[1:])
