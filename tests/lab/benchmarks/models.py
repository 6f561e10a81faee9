"""The models, equal for all servers: constant answers, ResNets on a JPEG, real weights; and the correct answers."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.real import packages
from tests.places import ROOT
from tsctl.daemon.marfile import Packing, write_archive

FOLDER = ROOT / ".bench"  # what the benchmarks keep; git ignores it
MODELS = FOLDER / "models"
HANDLERS = Path(__file__).parent / "peers" / "apps"
TOLERANCE = 0.02  # of a probability, relative: kernels and batch sizes round differently
CLOSE = 1e-3  # of a number of an embedding
MINILM = "all-MiniLM-L6-v2"
REAL = {"minilm": "minilm", "lite0": "photographs"}  # name → row of the table of real models
_WEIGHTS = {"minilm": f"minilm/{MINILM}", "lite0": "lite0/lite0.pth"}

_MODEL_FILE = """\
from torchvision.models.resnet import {block}, ResNet


class Net(ResNet):
    def __init__(self):
        super().__init__({block}, {layers})
"""
_LAYERS = {
    "resnet18": ("BasicBlock", [2, 2, 2, 2]),
    "resnet50": ("Bottleneck", [3, 4, 6, 3]),
    "resnet152": ("Bottleneck", [3, 8, 36, 3]),
}


class Request(NamedTuple):
    """The file that is sent, and whether an answer's body is right."""

    body: Path
    right: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Served:
    """A model and the requests to it.

    Attributes:
        name: `constant`, `brief` (the same, and it takes 20 ms), `resnet18`, `resnet50`, `resnet152`, `minilm` or
            `lite0`.
        expected: class → probability, of the only request; None if the model gives none, or there are several.
    """

    name: str
    requests: Sequence[Request]
    expected: Mapping[str, float] | None = None

    @property
    def body(self) -> Path:
        """The first file that is sent."""
        return self.requests[0].body

    def right(self, answer: bytes) -> bool:
        """Return whether the answer to the first request is right."""
        return self.requests[0].right(answer)

    def within(self, tolerance: float) -> "Served":
        """Make the same, with answers that are right within another relative tolerance of a probability."""
        expected = self.expected
        if expected is None:
            return self
        return replace(self, requests=[Request(self.body, lambda answer: same_classes(answer, expected, tolerance))])


def constant(size: int, name: str = "constant") -> Served:
    """A handler that answers how many bytes it got: as good as constant, and it shows that they came."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / f"{size}-bytes"
    body.write_bytes(bytes(index * 7 % 251 for index in range(size)))
    return Served(name, [Request(body, lambda answer: answer.strip() == b"%d" % size)])


def resnet(name: str) -> Served:
    """A ResNet with random weights and a photograph; both are made if they are not there."""
    MODELS.mkdir(parents=True, exist_ok=True)
    reference = MODELS / f"{name}.json"
    if not reference.is_file():
        subprocess.run([sys.executable, "-m", "tests.lab.benchmarks.weights", name, MODELS], cwd=ROOT, check=True)
    expected: dict[str, float] = json.loads(reference.read_text())
    return Served(name, [Request(MODELS / "photo.jpg", lambda answer: same_classes(answer, expected))], expected)


def real(name: str) -> Served:
    """Return a model with its own weights, and its inputs; its answers are those of the function in one process.

    Raises:
        Missing: its packages could not be installed.
    """
    # Not above: other laboratories use this module on machines that lack much.
    from tests.lab.real.models import MODELS as TABLE

    folder = MODELS / name
    packages.install(REAL[name], TABLE[REAL[name]].packages)
    if not (folder / "expected.json").is_file():
        command: list[str | Path] = [sys.executable, "-m", "tests.lab.benchmarks.weights", REAL[name], folder]
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | packages.environment())
    same = same_numbers if name == "minilm" else same_classes
    answers = json.loads((folder / "expected.json").read_text())
    return Served(
        name, [Request(folder / str(number), partial(same, expected=each)) for number, each in enumerate(answers)]
    )


def same_numbers(answer: bytes, expected: Sequence[float]) -> bool:
    """Return whether the answer is a list of these numbers, each within `CLOSE`."""
    try:
        found = [float(value) for value in json.loads(answer)]
    except (ValueError, TypeError):
        return False
    return len(found) == len(expected) and all(abs(a - b) <= CLOSE for a, b in zip(found, expected, strict=True))


def same_classes(answer: bytes, expected: Mapping[str, float], tolerance: float = TOLERANCE) -> bool:
    """Whether the first class is the expected one, and the probability of each that both name is, too."""
    try:
        found = {str(label): float(value) for label, value in json.loads(answer).items()}
    except (ValueError, TypeError, AttributeError):
        return False
    both = found.keys() & expected.keys()
    best = max(expected, key=lambda label: expected[label])
    return best in both and all(abs(found[label] - expected[label]) <= tolerance * expected[label] for label in both)


def archive(served: Served, store: Path, batch_size: int, delay: float, further: str = "") -> Path:
    """Pack the model for tsctl and TorchServe, with its batching in model-config.yaml, and further lines of that."""
    name, folder, weights = served.name, store.parent, MODELS / _WEIGHTS.get(served.name, f"{served.name}.pth")
    config = folder / "model-config.yaml"
    settings = (
        f"batchSize: {batch_size}\nmaxBatchDelay: {round(delay * 1000)}\nminWorkers: 1\nmaxWorkers: 1\n"
        f"responseTimeout: 120\n{further}"
    )
    parts: dict[str, Any] = {"handler": "image_classifier", "serialized_file": weights}
    if name == "minilm":
        source = MODELS / "minilm" / "embed.py"
        parts = {"handler": str(source), "extra_files": str(weights), "kept": frozenset({MINILM})}
    elif name == "lite0":
        source = ROOT / "docs" / "examples" / "photographs" / "model.py"
        settings += source.with_name("model-config.yaml").read_text()
        parts["model_file"] = source
    elif name in _LAYERS:
        source = folder / "net.py"
        source.write_text(_MODEL_FILE.format(block=_LAYERS[name][0], layers=_LAYERS[name][1]))
        parts["model_file"] = source
    else:
        source = HANDLERS / f"{name}.py"
        parts = {"handler": str(source)}
    config.write_text(settings)
    packing = Packing(model_name=name, version="1.0", config_file=config, **parts)
    return _packed(packing, (source, config, *[MODELS / f"{name}.json"] * (name in _LAYERS)), store)


def _packed(packing: Packing, sources: Sequence[Path], store: Path) -> Path:
    """Return the archive in the store: one that was packed before from equal files, else a new one.

    Args:
        sources: the small files that decide. An archive has a date, so a second one is another archive, for which
            models are compiled anew.
    """
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    kept = MODELS / "archives" / digest / f"{packing.model_name}.mar"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_archive(packing, kept.parent, force=True)
    place = store / kept.name
    shutil.copyfile(kept, place)
    return place


def app_environment(served: Served, batch_size: int, delay: float) -> dict[str, str]:
    """Return the same settings as environment variables for an app (peers/apps)."""
    return {
        "BENCH_MODEL": served.name,
        "BENCH_WEIGHTS": str(MODELS / _WEIGHTS.get(served.name, f"{served.name}.pth")),
        "BENCH_BATCH_SIZE": str(batch_size),
        "BENCH_DELAY": str(delay),
    } | packages_environment(served)


def packages_environment(served: Served) -> dict[str, str]:
    """Return the variables with which a server finds the packages of a model."""
    return packages.environment() if served.name in REAL else {}
