"""Sixteen numbers as a tensor of the Open Inference Protocol, for calls over gRPC, and the right answer."""

import array
import json
from pathlib import Path

SHAPE = (1, 16)
DECLARED = """\
inputs: [{name: NUMBERS, datatype: FP32, shape: [-1, 16]}]
outputs: [{name: SUM, datatype: FP32, shape: [-1, 1]}]
"""


def values() -> "array.array[float]":
    return array.array("f", range(16))


def write_json(file: Path) -> dict[str, str]:
    """Write the request over HTTP, by which a server's start is seen; return its headers."""
    tensor = {"name": "NUMBERS", "datatype": "FP32", "shape": SHAPE, "data": values().tolist()}
    file.write_text(json.dumps({"inputs": [tensor]}))
    return {"Content-Type": "application/json"}


def right(answer: bytes) -> bool:
    """Return whether an answer over HTTP has the sum."""
    try:
        found = json.loads(answer)["outputs"][0]["data"]
        return bool((found[0] if isinstance(found[0], list) else found) == [sum(values())])
    except (ValueError, TypeError, LookupError):
        return False
