"""The libraries of the examples: an environment of their own, and stand-ins of those that cannot be had."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.environments import Missing, make_environment
from tests.lab.torchserve.examples.stand_ins import write_stand_ins
from tests.lab.torchserve.examples.weights import NO_NETWORK

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / ".torchserve-libraries"
PACKAGES = (
    "lru-dict", "transformers<4.47",  # the examples pad with pad_to_max_length, which later versions refuse
    "accelerate", "datasets", "sentencepiece", "soundfile", "ultralytics", "xgboost", "scikit-learn",
)  # fmt: skip


class Libraries:
    """What workers and recipes find beside the project's own environment.

    Attributes:
        variables: those of the daemon and of recipes.
        stand_ins: the libraries that have a stand-in, because they are not installed.
    """

    def __init__(self, folder: Path) -> None:
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(FOLDER)}))
        try:
            make_environment(FOLDER, PACKAGES)
        except Missing as error:
            print(f"note: {error}; the examples that need these libraries are not judged")
        self.stand_ins = write_stand_ins(folder / "stand_ins", packages)
        self.variables = NO_NETWORK | {
            "HF_HOME": str(folder / "hugging_face"),
            "LLAMA2_Q4_MODEL": os.devnull,  # of the example llamacpp
            "PYTHONPATH": f"{packages}{os.pathsep}{folder / 'stand_ins'}",
            "YOLO_CONFIG_DIR": str(folder),
        }

    def follow(self, recipe: str, folder: Path, page: Path, model: str, weights: str) -> str:
        """Run a recipe, which writes its files into a folder; return why that is not possible, empty if it was."""
        words = (recipe, str(folder), str(page), model, weights)
        variables = os.environ | self.variables
        variables["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
        done = subprocess.run(
            [sys.executable, "-m", "tests.lab.torchserve.examples.recipes", *words],
            env=variables, cwd=folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]
