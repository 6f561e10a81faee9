"""The models, equal for all servers: a constant answer, and ResNets on a JPEG; and the correct answers."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from daemon.marfile import Packing, write_archive
from tests.lab.benchmarks import few_numbers, images
from tests.lab.benchmarks.environments import FOLDER, ROOT
from tests.lab.benchmarks.workload_names import TEXT, TYPED

MODELS = FOLDER / "models"
HANDLERS = Path(__file__).parent / "peers" / "apps"
PAUSE = 0.02  # seconds that a batch of `brief` takes
TENSORS, NUMBERS = "tensor", "few_numbers"  # the models that are asked by the Open Inference Protocol
DECLARED = {TENSORS: images.DECLARED, NUMBERS: few_numbers.DECLARED}
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
        name: `constant`, `brief` (the same, and it takes 20 ms), `fast` (the same, `slow` is beside it), `resnet18`,
            `resnet50`, `resnet152`, `tensor`, `few_numbers`, `text` or `flowers`.
        body: the file that is sent.
        right: whether an answer's body is right.
        expected: class → probability; None if the model gives none.
        headers: of the request.
        beside: another model that the server has, too.
        grpc: whether the model is asked over gRPC, too.
    """

    name: str
    body: Path
    right: Callable[[bytes], bool]
    expected: Mapping[str, float] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    beside: "Served | None" = None
    grpc: bool = False

    @property
    def all(self) -> list["Served"]:
        """All models of the server."""
        return [self, *([self.beside] if self.beside else [])]

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
    headers = images.write_binary(body)
    return Served(TENSORS, body, images.right, headers=headers)


def numbers_over_grpc() -> Served:
    """A handler that answers the mean of 16 numbers, asked over gRPC, too."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / "few_numbers"
    headers = few_numbers.write_binary(body)
    return Served(NUMBERS, body, few_numbers.right, headers=headers, grpc=True)


def two() -> Served:
    """A constant answer beside a model that takes half a second for a batch."""
    return replace(constant(100, "fast"), beside=constant(100, "slow"))


def text() -> Served:
    """An encoder with the size of BERT-base and random weights, and a text of the usual length; made if not there."""
    MODELS.mkdir(parents=True, exist_ok=True)
    body, reference = MODELS / "text", MODELS / "text.json"
    body.write_bytes(b"my card was charged twice for the same taxi ride last night why")
    if not reference.is_file():
        program = (
            "import json, sys; from tests.lab.benchmarks.peers.apps.models_of_apps import load_text;"
            " sys.stdout.buffer.write(load_text()([open(sys.argv[1], 'rb').read()])[0])"
        )
        made = subprocess.run([sys.executable, "-c", program, body], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        reference.write_bytes(made.stdout)
    expected = json.loads(reference.read_text())["mean"]
    return Served("text", body, lambda answer: _near(answer, "mean", expected))


def flowers() -> Served:
    """The score of a flower from four numbers in JSON; `torch.manual_seed(1)` gives the weights."""
    from tests.lab.benchmarks.peers.apps.models_of_apps import load_flowers

    MODELS.mkdir(parents=True, exist_ok=True)
    body = MODELS / "flower.json"
    body.write_text("[5.1, 3.5, 1.4, 0.2]")
    score = json.loads(load_flowers()([body.read_bytes()])[0])["score"]
    headers = {"Content-Type": "application/json"}
    return Served("flowers", body, lambda answer: _near(answer, "score", score), headers=headers)


def _near(answer: bytes, name: str, expected: float) -> bool:
    try:
        return abs(float(json.loads(answer)[name]) - expected) <= TOLERANCE * abs(expected)
    except (ValueError, TypeError, LookupError):
        return False


def same_classes(answer: bytes, expected: Mapping[str, float], tolerance: float = TOLERANCE) -> bool:
    """Whether the first class is the expected one, and the probability of each that both name is, too."""
    try:
        found = {str(label): float(value) for label, value in json.loads(answer).items()}
    except (ValueError, TypeError, AttributeError):
        return False
    both = found.keys() & expected.keys()
    best = max(expected, key=lambda label: expected[label])
    return best in both and all(abs(found[label] - expected[label]) <= tolerance * expected[label] for label in both)


def archive(
    served: Served, store: Path, batch_size: int, delay: float, further: str = "", *, plain: bool = False
) -> Path:
    """Pack the model for tsctl and TorchServe, with its batching in model-config.yaml, and further lines of that.

    Args:
        plain: take a plain handler where there is a typed one, too.
    """
    config = store.parent / "model-config.yaml"
    config.write_text(
        f"batchSize: {batch_size}\nmaxBatchDelay: {round(delay * 1000)}\nminWorkers: 1\nmaxWorkers: 1\n"
        f"responseTimeout: 120\n{further}"
    )
    if served.name not in _LAYERS:
        if served.name in DECLARED:
            config.write_text(config.read_text() + DECLARED[served.name])
        handler = HANDLERS / f"{served.name}{'_plain' * (plain and served.name == TYPED)}.py"
        if served.name == TEXT:
            handler = Path(__file__).parent / "text_handler.py"
        elif served.name == "fast":
            handler = HANDLERS / "constant.py"
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


def app_environment(served: Served, batch_size: int, delay: float) -> dict[str, str]:
    """Return the same settings as environment variables for an app (peers/apps)."""
    return {
        "BENCH_MODEL": served.name,
        "BENCH_WEIGHTS": str(MODELS / f"{served.name}.pth"),
        "BENCH_PAUSE": str(PAUSE if served.name == "brief" else 0),
        "BENCH_BATCH_SIZE": str(batch_size),
        "BENCH_DELAY": str(delay),
    }
