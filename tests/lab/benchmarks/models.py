"""The models, equal for all servers: a constant answer, and ResNets on a JPEG; and the correct answers."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.lab.benchmarks import sentences
from tests.lab.benchmarks.environments import FOLDER, ROOT
from tests.lab.benchmarks.tensors import IMAGE, NUMBERS
from tsctl.daemon.marfile import Packing, write_archive

MODELS = FOLDER / "models"
HANDLERS = Path(__file__).parent / "peers" / "apps"
TENSORS = "tensor"  # the model that is asked by the Open Inference Protocol
VECTORS = "vector"  # and this one, over gRPC
TEXTS = "text"  # the model of text_handler.py
TYPED = "typed"
TOLERANCE = 0.02  # of a probability, relative: kernels and batch sizes round differently

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


@dataclass(frozen=True, slots=True)
class Served:
    """A model and a request to it.

    Attributes:
        name: `constant`, `brief` and `slow` (the same, and they take 20 and 200 ms), `resnet18`, `resnet50`,
            `resnet152`, `tensor`, `vector`, `text` or `typed`.
        body: the file that is sent.
        bodies: the files that are sent in turn under load; empty for `body` alone.
        right: whether an answer's body is right.
        expected: class → probability; None if the model gives none.
        headers: of the request.
    """

    name: str
    body: Path
    right: Callable[[bytes], bool]
    expected: Mapping[str, float] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    bodies: Sequence[Path] = ()

    def within(self, tolerance: float) -> "Served":
        """Make the same, with answers that are right within another relative tolerance of a probability."""
        expected = self.expected
        if expected is None:
            return self
        return replace(self, right=lambda answer: same_classes(answer, expected, tolerance))


def constant(size: int, name: str = "constant") -> Served:
    """A handler that answers how many bytes it got: as good as constant, and it shows that they came."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / f"{size}-bytes"
    body.write_bytes(bytes(index * 7 % 251 for index in range(size)))
    return Served(name, body, lambda answer: answer.strip() == b"%d" % size)


def resnet(name: str) -> Served:
    """A ResNet with random weights and a photograph; both are made if they are not there."""
    MODELS.mkdir(parents=True, exist_ok=True)
    reference = MODELS / f"{name}.json"
    if not reference.is_file():
        subprocess.run([sys.executable, "-m", "tests.lab.benchmarks.weights", name, MODELS], cwd=ROOT, check=True)
    expected: dict[str, float] = json.loads(reference.read_text())
    return Served(name, MODELS / "photo.jpg", lambda answer: same_classes(answer, expected), expected)


def tensor() -> Served:
    """A handler that answers the means of an image's planes; the image is a binary tensor."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / "image-tensor"
    headers = IMAGE.write_binary(body)
    return Served(TENSORS, body, IMAGE.right, headers=headers)


def vector() -> Served:
    """A handler that adds up a tensor of 16 numbers."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / "vector.json"
    headers = NUMBERS.write_json(body)
    return Served(VECTORS, body, NUMBERS.right, headers=headers)


def texts() -> Served:
    """An encoder with the size of BERT-base, and texts of many lengths."""
    files = sentences.write(MODELS / "texts")
    return Served(TEXTS, files[0], sentences.right_of(files[0], MODELS / "text.json"), bodies=files)


def typed() -> Served:
    """A typed handler that adds up 16 numbers in JSON."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body, numbers = MODELS / "numbers.json", [number / 4 for number in range(16)]
    body.write_text(json.dumps(numbers))
    headers = {"Content-Type": "application/json"}
    return Served(TYPED, body, lambda answer: answer.strip() == b"%.1f" % sum(numbers), headers=headers)


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
    config = store.parent / "model-config.yaml"
    config.write_text(
        f"batchSize: {batch_size}\nmaxBatchDelay: {round(delay * 1000)}\nminWorkers: 1\nmaxWorkers: 1\n"
        f"responseTimeout: 120\n{further}"
    )
    if served.name not in _LAYERS:
        declared = {TENSORS: IMAGE, VECTORS: NUMBERS}.get(served.name)
        config.write_text(config.read_text() + (declared.declared if declared else ""))
        handler = (
            Path(__file__).with_name("text_handler.py") if served.name == TEXTS else HANDLERS / f"{served.name}.py"
        )
        packing = Packing(model_name=served.name, version="1.0", handler=str(handler), config_file=config)
        return _packed(packing, (handler, config), store)
    block, layers = _LAYERS[served.name]
    model_file = store.parent / "net.py"
    model_file.write_text(_MODEL_FILE.format(block=block, layers=layers))
    packing = Packing(
        model_name=served.name, version="1.0", handler="image_classifier", model_file=model_file,
        serialized_file=MODELS / f"{served.name}.pth", config_file=config,
    )  # fmt: skip
    return _packed(packing, (model_file, config, MODELS / f"{served.name}.json"), store)


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


def app_environment(served: Served, batch_size: int, delay: float, beside: str = "") -> dict[str, str]:
    """Return the same settings as environment variables for an app (peers/apps); `beside`: a second model."""
    return {
        "BENCH_MODEL": served.name,
        "BENCH_BESIDE": beside,
        "BENCH_WEIGHTS": str(MODELS / f"{served.name}.pth"),
        "BENCH_BATCH_SIZE": str(batch_size),
        "BENCH_DELAY": str(delay),
    }
