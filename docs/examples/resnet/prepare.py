"""Write what the quick start needs beside model.py: weights, class names, a photograph, a model store.

python prepare.py                     random weights: answers of the right form, not right answers
python prepare.py --weights           the trained ones, downloaded by torchvision (230 MB)
python prepare.py --weights FILE      a state_dict that is already here
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from PIL import Image
from sklearn import datasets
from torchvision.models import ResNet152_Weights, resnet152

from tsctl.handlers.builtin.image_classifier import ImageClassifier

DOWNLOAD = "download"


def photograph() -> Path:
    """scikit-learn's bundled photograph of a flower."""
    return Path(datasets.__file__).parent / "images" / "flower.jpg"


def class_names() -> dict[str, str]:
    return {str(number): name for number, name in enumerate(ResNet152_Weights.IMAGENET1K_V2.meta["categories"])}


def weights(choice: str | None) -> dict[str, torch.Tensor]:
    """Make the state_dict: random (None), downloaded, or read from a file."""
    state: dict[str, torch.Tensor]
    if choice == DOWNLOAD:
        state = ResNet152_Weights.IMAGENET1K_V2.get_state_dict(progress=True)
    elif choice is not None:
        state = torch.load(choice, map_location="cpu", weights_only=True)
    else:
        state = _random_weights()
    return state


def _random_weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(152)
    model = resnet152(weights=None)
    # Without statistics of real activations, 152 random layers grow beyond float32: take them from
    # the photographs, once, in training mode with a cumulative average.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    folder = photograph().parent
    images = [ImageClassifier.image_processing(Image.open(folder / name)) for name in ("flower.jpg", "china.jpg")]
    crops = torch.stack(images)
    with torch.no_grad():
        model.train()(torch.cat([crops, crops.flip(-1)]))
        logits = model.eval()(crops)
        model.fc.weight.mul_(1 / logits.std())  # so that the five best are not 1, 0, 0, 0, 0
    state: dict[str, torch.Tensor] = model.state_dict()
    return state


def prepare(directory: Path, choice: str | None = None) -> None:
    """Write resnet152.pth, index_to_name.json, flower.jpg and an empty model_store into a directory."""
    torch.save(weights(choice), directory / "resnet152.pth")
    (directory / "index_to_name.json").write_text(json.dumps(class_names(), indent=1))
    shutil.copyfile(photograph(), directory / "flower.jpg")
    (directory / "model_store").mkdir(exist_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write what the quick start needs.")
    parser.add_argument("--weights", nargs="?", const=DOWNLOAD, metavar="FILE", help="Trained weights.")
    arguments = parser.parse_args()
    here = Path(__file__).parent
    prepare(here, arguments.weights)
    print(f"Wrote resnet152.pth, index_to_name.json, flower.jpg and model_store/ to {here.resolve()}")
