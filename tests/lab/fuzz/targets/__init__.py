"""The readers, by name; a campaign imports the one that it is for."""

import importlib

from tests.lab.fuzz.target import Target

NAMES = (
    "frames",
    "conversation",
    "forms",
    "manifest",
    "properties",
    "modelconfig",
    "modelinfer",
    "receiver",
    "connection",
    "repeated",
    "tensors",
    "answers",
    "typed",
    "http2",
    "completions",
)
# Those whose readers are compiled in a wheel, if only in part.
COMPILED = ("frames", "conversation", "forms", "receiver", "connection", "repeated", "tensors", "answers", "typed")


def target(name: str) -> Target:
    found: Target = importlib.import_module(f"{__name__}.{name}").TARGET
    return found
