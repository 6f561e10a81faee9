"""The readers, by name; a campaign imports the one that it is for. Those of extensions are in files named fuzz_NAME."""

import importlib

from tests.lab.fuzz.target import Target
from tests.places import ROOT

_OF_EXTENSIONS = {
    file.stem.removeprefix("fuzz_"): f"tests.extensions.{file.parent.name}.{file.stem}"
    for file in sorted((ROOT / "tests/extensions").glob("*/fuzz_*.py"))
}

NAMES = (
    "frames",
    "conversation",
    "forms",
    "manifest",
    "properties",
    "modelconfig",
    "receiver",
    "repeated",
    "tensors",
    "answers",
    "typed",
    *_OF_EXTENSIONS,
)
# Those whose readers are compiled in a wheel, if only in part.
COMPILED = ("frames", "conversation", "forms", "receiver", "repeated", "tensors", "answers", "typed")


def target(name: str) -> Target:
    found: Target = importlib.import_module(_OF_EXTENSIONS.get(name, f"{__name__}.{name}")).TARGET
    return found
