"""Sixteen numbers as a tensor of the Open Inference Protocol: small, so that a call itself is what costs."""

import array
import json
from pathlib import Path
from typing import Any

from daemon.api.grpc.protos.messages import message_class
from tests.lab.benchmarks.images import HEADER

SHAPE = (1, 16)
MEAN = 7.5
DECLARED = """\
inputs: [{name: X, datatype: FP32, shape: [-1, 16]}]
outputs: [{name: MEAN, datatype: FP32, shape: [-1, 1]}]
"""


def data() -> bytes:
    return array.array("f", range(16)).tobytes()


def write_binary(file: Path) -> dict[str, str]:
    """Write the request for HTTP, with the numbers as bytes; return its headers."""
    numbers = data()
    tensor = {"name": "X", "datatype": "FP32", "shape": SHAPE, "parameters": {"binary_data_size": len(numbers)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    file.write_bytes(head + numbers)
    return {"Content-Type": "application/octet-stream", HEADER: str(len(head))}


def message(model: str) -> bytes:
    """Return the request for gRPC."""
    kind: Any = message_class("inference.ModelInferRequest")
    tensor = {"name": "X", "datatype": "FP32", "shape": SHAPE}
    encoded: bytes = kind(model_name=model, inputs=[tensor], raw_input_contents=[data()]).SerializeToString()
    return encoded


def right(answer: bytes) -> bool:
    """Return whether an answer over HTTP has the mean."""
    try:
        found = json.loads(answer)["outputs"][0]["data"]
        return (found[0] if isinstance(found[0], list) else found) == [MEAN]
    except (ValueError, TypeError, LookupError):
        return False


def right_message(answer: Any) -> bool:
    """Return whether a ModelInferResponse has the mean."""
    raw = answer.raw_output_contents
    found = memoryview(raw[0]).cast("f").tolist() if raw else list(answer.outputs[0].contents.fp32_contents)
    return found == [MEAN]
