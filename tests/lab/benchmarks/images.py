"""An image as a tensor of the Open Inference Protocol: the request that carries it, and its right answer."""

import array
import json
from pathlib import Path

SHAPE = (1, 3, 224, 224)
_PLANE = 224 * 224
HEADER = "Inference-Header-Content-Length"
DECLARED = """\
inputs: [{name: IMAGE, datatype: FP32, shape: [-1, 3, 224, 224]}]
outputs: [{name: MEAN, datatype: FP32, shape: [-1, 3]}]
"""
_NEAR = 1e-3  # what single precision may do to a mean of 50 000 numbers


def values() -> "array.array[float]":
    """Return the numbers of the three planes, each with a mean of its own."""
    return array.array("f", [plane + (index % 256) / 256 for plane in range(3) for index in range(_PLANE)])


def write_binary(file: Path) -> dict[str, str]:
    """Write the request with the numbers as bytes; return its headers."""
    data = values().tobytes()
    tensor = {"name": "IMAGE", "datatype": "FP32", "shape": SHAPE, "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    file.write_bytes(head + data)
    return {"Content-Type": "application/octet-stream", HEADER: str(len(head))}


def write_json(file: Path) -> dict[str, str]:
    """Write the request with the numbers in JSON; return its headers."""
    tensor = {"name": "IMAGE", "datatype": "FP32", "shape": SHAPE, "data": values().tolist()}
    file.write_text(json.dumps({"inputs": [tensor]}))
    return {"Content-Type": "application/json"}


def right(answer: bytes) -> bool:
    """Return whether an answer has the mean of each plane."""
    try:
        found = json.loads(answer)["outputs"][0]["data"]
        flat = found[0] if isinstance(found[0], list) else found
        return len(flat) == 3 and all(abs(mean - wanted) < _NEAR for mean, wanted in zip(flat, means(), strict=True))
    except (ValueError, TypeError, LookupError):
        return False


def means() -> list[float]:
    """Return the right answer: 50 176 numbers are 196 times those of 256."""
    return [plane + 255 / 512 for plane in range(3)]
