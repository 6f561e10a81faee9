"""`python -m tests.lab accuracy`: the best class kept, and the CPU time of an image, for each set of optimisations.

All sets answer the same crops; CPU time is of this process, in turns, on one thread: the shortest of a set's turns,
since other programs only add to it. What the check of an archive says is told as well: with 32 other crops as samples,
and without `optimizeTolerance`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tests.environments import Missing
from tests.lab.accuracy.models import Archive, install, put_lite0
from tests.lab.accuracy.photographs import EACH, FILES, crops
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError

SETS = (
    "none", "none,fold", "none,channels_last", "none,bf16", "", "compile", "onnxruntime", "none,onnxruntime", "bf16",
    "bf16,compile", "int8",
)  # fmt: skip
BATCHES = (1, 8)
SAMPLES = 32
SEED = 7
ANY = dict.fromkeys(("bf16", "int8", "compile"), 1.0)


class Row(NamedTuple):
    """One set: milliseconds of CPU an image by the batch's size, and the fraction of crops that keep the best class."""

    names: str
    milliseconds: dict[int, float]
    kept: float
    check: str


def loaded(archive: Archive, folder: Path, names: str, **more: Any) -> ImageClassifier:
    """Return a handler with its model optimised by a set.

    Raises:
        HandlerError: an optimisation cannot be done here, or is refused.
    """
    context = Context(
        "net", str(folder), {"model": archive.entry}, batch_size=max(BATCHES), model_yaml_config=archive.config | more
    )
    handler = ImageClassifier()
    handler.initialize(context)
    optimize(handler, names.split(",") if names else None, folder, handler.model_yaml_config, max(BATCHES))
    return handler


def checked(archive: Archive, folder: Path, names: str, before: str) -> str:
    """Return what the check of an archive with samples says of a set."""
    if not {"bf16", "int8"} & {*names.split(",")}:
        return before
    try:
        loaded(archive, folder, names, warmup="samples")
    except HandlerError as error:
        return str(error).rpartition("cannot be done: ")[2].partition(": name typical")[0]
    return "kept"


def classes(handler: ImageClassifier, images: Sequence[bytes]) -> torch.Tensor:
    size = max(BATCHES)
    parts = [images[start : start + size] for start in range(0, len(images), size)]
    return torch.cat([handler.inference(handler.preprocess(rows(part))).argmax(1) for part in parts])


def rows(images: Sequence[bytes]) -> list[dict[str, Any]]:
    return [{"body": each} for each in images]


def cpu_time(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def shortest(handlers: Sequence[ImageClassifier], images: Sequence[bytes], size: int, rounds: int) -> list[float]:
    """Return milliseconds of CPU an image for each handler, measured in turns."""
    best = [float("inf")] * len(handlers)
    batch = rows(images[:size])
    for _ in range(rounds):
        for place, handler in enumerate(handlers):
            context = handler.context
            best[place] = min(best[place], cpu_time(lambda h=handler, c=context: h.handle(batch, c)))  # type: ignore[misc]
    return [seconds * 1000 / size for seconds in best]


def table(rows: Sequence[Row], archive: Archive, images: int) -> list[str]:
    """Return the lines of the table, in Markdown."""
    lines = [
        f"| {archive.name} | {' | '.join(f'CPU an image, {size} in a batch' for size in BATCHES)} | best class kept,"
        f" of {images} | the check on {SAMPLES} samples |",
        f"|---|{'---:|' * (len(BATCHES) + 1)}---|",
    ]
    for each in rows:
        times = " | ".join(f"{each.milliseconds[size]:.1f} ms" for size in BATCHES)
        name = f"`{each.names}`" if each.names else "the default: `fast_images,fold,channels_last`"
        if each.names and "none" not in each.names:
            name = f"default + {name}"
        lines.append(f"| {name} | {times} | {each.kept:.1%} | {each.check} |")
    return lines


def measure(archive: Archive, folder: Path, images: Sequence[bytes], rounds: int) -> list[Row]:
    handlers: dict[str, ImageClassifier] = {}
    for names in SETS:
        try:
            handlers[names] = loaded(archive, folder, names, optimizeTolerance=ANY)
        except HandlerError as error:
            print(f"{names}: {error}", file=sys.stderr)
    expected = classes(handlers["none"], images)
    times = {size: shortest(list(handlers.values()), images, size, rounds) for size in BATCHES}
    made = []
    for place, (names, handler) in enumerate(handlers.items()):
        kept = (classes(handler, images) == expected).double().mean().item()
        check = checked(archive, folder, names, "" if names == "none" else "rounding")
        made.append(Row(names, {size: times[size][place] for size in BATCHES}, kept, check))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab accuracy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each set")
    given = parser.parse_args()
    torch.set_num_threads(1)
    try:
        install()
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    images = crops(SEED)
    with tempfile.TemporaryDirectory(prefix="accuracy-") as made:
        folder = Path(made, "model")
        (folder / "samples").mkdir(parents=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(made, "compiled"))
        sys.path.insert(0, str(folder))
        for number, image in enumerate(crops(SEED + 1)[:: len(images) // SAMPLES][:SAMPLES]):
            (folder / "samples" / f"{number:02}.jpg").write_bytes(image)
        archive = put_lite0(folder)
        found = measure(archive, folder, images, given.rounds)
    drawn = f"{EACH} crops of each of {sum(map(len, FILES.values()))} photographs"
    print(f"{read_processor()}, torch {torch.__version__}; {drawn}")
    print("\n".join(table(found, archive, len(images))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
