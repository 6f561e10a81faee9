"""`python -m tests.lab accuracy`: the best class kept, and the CPU time of an image, for each set of optimisations.

The model is that of docs/examples/photographs; the images are crops, which a seed draws, of photographs in the data of
scikit-image, scikit-learn and matplotlib, and of TorchServe's example images. All sets answer the same crops; CPU time
is of this process, in turns, on one thread: the shortest of a set's turns, since other programs only add to it. What
the check of an archive says is told as well: with 32 other crops as samples, and without `optimizeTolerance`.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import torch
from PIL import Image

from tests.environments import Missing
from tests.lab.real import packages
from tests.places import ROOT
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError

FILES = {
    "skimage/data": (
        "astronaut.png", "brick.png", "camera.png", "cell.png", "chelsea.png", "clock_motion.png", "coffee.png",
        "coins.png", "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "microaneurysms.png", "moon.png",
        "motorcycle_left.png", "motorcycle_right.png", "page.png", "retina.jpg", "rocket.jpg", "text.png",
    ),
    "sklearn/datasets/images": ("china.jpg", "flower.jpg"),
    "matplotlib/mpl-data/sample_data": ("grace_hopper.jpg",),
}  # fmt: skip
TORCHSERVE = "https://raw.githubusercontent.com/pytorch/serve/62c4d6a1fdc1d071dbcf758ebd756029af20bd5e"
EXAMPLES = (
    "image_classifier/kitten.jpg", "image_classifier/resnet_152_batch/images/croco.jpg",
    "image_classifier/resnet_152_batch/images/dog.jpg", "Workflows/dog_breed_classification/model_input/Dog1.jpg",
    "Workflows/dog_breed_classification/model_input/Dog2.jpg", "image_segmenter/persons.jpg",
)  # fmt: skip
PHOTOGRAPHS = packages.Packages(alone=("scikit-image==0.26.0", "lazy_loader"))  # nothing else of it finds its files
EACH = 20  # crops of a photograph
LEAST, MOST = 0.35, 1.0  # of its shorter side
SETS = (
    "none", "none,fold", "none,channels_last", "none,bf16", "", "compile", "onnxruntime", "none,onnxruntime", "bf16",
    "bf16,compile", "int8",
)  # fmt: skip
BATCHES = (1, 8)
SAMPLES = 32
SEED = 7
ENTRY = {"modelFile": "model.py", "serializedFile": "lite0.pth"}
TRAINED = {"mean": round(127 / 255, 4), "std": round(128 / 255, 4), "interpolation": "bicubic"}  # as the model was
ANY = dict.fromkeys(("bf16", "int8", "compile"), 1.0)


def photographs(torchserve: str) -> Iterator[Image.Image]:
    """Yield the photographs: of installed packages, and of a checkout of TorchServe's repository or of its address.

    Raises:
        Missing: an image of TorchServe's cannot be read.
    """
    for folder, names in FILES.items():
        package, _, inside = folder.partition("/")
        found = find_spec(package)
        assert found is not None and found.origin is not None, f"{package} is not installed"
        for name in names:
            with Image.open(Path(found.origin).parent / inside / name) as image:
                yield image.convert("RGB")
    for name in EXAMPLES:
        try:
            address = torchserve if "://" in torchserve else Path(torchserve).resolve().as_uri()
            with urlopen(f"{address}/examples/{name}", timeout=60) as file:
                yield Image.open(io.BytesIO(file.read())).convert("RGB")
        except OSError as error:
            remedy = "give a checkout of github.com/pytorch/serve with --torchserve"
            raise Missing(f"TorchServe's examples/{name} cannot be read from {torchserve}: {error}; {remedy}") from None


def crops(images: Sequence[Image.Image], seed: int) -> list[bytes]:
    """Return JPEGs of crops, `EACH` of each photograph: of any place, some mirrored; the same for the same seed."""
    drawn = np.random.default_rng(seed)
    made = []
    for image in images:
        for _ in range(EACH):
            side = round(min(image.size) * drawn.uniform(LEAST, MOST))
            left, top = (int(drawn.integers(0, length - side + 1)) for length in image.size)
            crop = image.crop((left, top, left + side, top + side))
            if drawn.integers(2):
                crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            file = io.BytesIO()
            crop.save(file, "JPEG", quality=90)
            made.append(file.getvalue())
    return made


def loaded(folder: Path, names: str, **more: Any) -> ImageClassifier:
    """Return a handler with the example's model, optimised by a set.

    Raises:
        HandlerError: an optimisation cannot be done here, or is refused.
    """
    context = Context("net", str(folder), {"model": ENTRY}, batch_size=max(BATCHES), model_yaml_config=TRAINED | more)
    handler = ImageClassifier()
    handler.initialize(context)
    optimize(handler, names.split(",") if names else None, folder, handler.model_yaml_config, max(BATCHES))
    return handler


def checked(folder: Path, names: str) -> str:
    """Return what the check of an archive with samples says of a set."""
    if not {"bf16", "int8"} & {*names.split(",")}:
        return "" if names == "none" else "rounding"
    try:
        loaded(folder, names, warmup="samples")
    except HandlerError as error:
        return str(error).rpartition("cannot be done: ")[2].partition(": name typical")[0]
    return "kept"


def classes(handler: ImageClassifier, images: Sequence[bytes]) -> torch.Tensor:
    size = max(BATCHES)
    parts = [images[start : start + size] for start in range(0, len(images), size)]
    return torch.cat([handler.inference(handler.preprocess(rows(part))).argmax(1) for part in parts])


def rows(images: Sequence[bytes]) -> list[dict[str, Any]]:
    return [{"body": each} for each in images]


def shortest(handlers: Sequence[ImageClassifier], images: Sequence[bytes], rounds: int) -> list[float]:
    """Return milliseconds of CPU an image for each handler, measured in turns."""
    best, batch = [float("inf")] * len(handlers), rows(images)
    for _ in range(rounds):
        for place, handler in enumerate(handlers):
            began = time.process_time()
            handler.handle(batch, handler.context)
            best[place] = min(best[place], time.process_time() - began)
    return [seconds * 1000 / len(images) for seconds in best]


def measure(folder: Path, images: Sequence[bytes], rounds: int) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    handlers: dict[str, ImageClassifier] = {}
    for names in SETS:
        try:
            handlers[names] = loaded(folder, names, optimizeTolerance=ANY)
        except HandlerError as error:
            print(f"{names}: {error}", file=sys.stderr)
    heads = " | ".join(f"CPU an image, {size} in a batch" for size in BATCHES)
    yield f"| EfficientNet-Lite0 | {heads} | best class kept, of {len(images)} | the check on {SAMPLES} samples |"
    yield f"|---|{'---:|' * (len(BATCHES) + 1)}---|"
    expected = classes(handlers["none"], images)
    times = zip(*(shortest([*handlers.values()], images[:size], rounds) for size in BATCHES), strict=True)
    for (names, handler), taken in zip(handlers.items(), times, strict=True):
        kept = (classes(handler, images) == expected).double().mean().item()
        name = f"`{names}`" if names else "the default: `fast_images,fold,channels_last`"
        name = name if "none" in names or not names else f"default + {name}"
        cells = " | ".join(f"{each:.1f} ms" for each in taken)
        yield f"| {name} | {cells} | {kept:.1%} | {checked(folder, names)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab accuracy", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="turns of each set")
    parser.add_argument(
        "--torchserve", metavar="FOLDER", default=TORCHSERVE, help="a checkout of TorchServe's repository"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    try:
        packages.install("accuracy", PHOTOGRAPHS)
        originals = list(photographs(given.torchserve))
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    images = crops(originals, SEED)
    with tempfile.TemporaryDirectory(prefix="accuracy-") as made:
        folder = Path(made, "model")
        shutil.copytree(ROOT / "docs/examples/photographs", folder)
        subprocess.run([sys.executable, "prepare.py"], cwd=folder, check=True)
        (folder / "samples").mkdir()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(made, "compiled"))
        sys.path.insert(0, str(folder))
        for number, image in enumerate(crops(originals, SEED + 1)[:: len(images) // SAMPLES][:SAMPLES]):
            (folder / "samples" / f"{number:02}.jpg").write_bytes(image)
        drawn = f"{EACH} crops of each of {len(originals)} photographs"
        print(f"{read_processor()}, torch {torch.__version__}; {drawn}")
        for line in measure(folder, images, given.rounds):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
