"""Requests of the Open Inference Protocol, and their right answers: an image as a tensor, and sixteen numbers."""

import array
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HEADER = "Inference-Header-Content-Length"
_NEAR = 1e-3  # what single precision may do to a mean of 50 000 numbers
_PLANE = 224 * 224


@dataclass(frozen=True, slots=True)
class Tensor:
    """A request of one tensor of FP32.

    Attributes:
        wanted: the numbers of the right answer.
        declared: the model's tensors, in model-config.yaml.
    """

    name: str
    shape: tuple[int, ...]
    values: "array.array[float]"
    wanted: Sequence[float]
    declared: str

    def write_binary(self, file: Path) -> dict[str, str]:
        """Write the request with the numbers as bytes; return its headers."""
        data = self.values.tobytes()
        head = self._request(parameters={"binary_data_size": len(data)})
        file.write_bytes(head + data)
        return {"Content-Type": "application/octet-stream", HEADER: str(len(head))}

    def write_json(self, file: Path) -> dict[str, str]:
        """Write the request with the numbers in JSON; return its headers."""
        file.write_bytes(self._request(data=self.values.tolist()))
        return {"Content-Type": "application/json"}

    def right(self, answer: bytes) -> bool:
        """Return whether an answer over HTTP has the wanted numbers."""
        try:
            found = json.loads(answer)["outputs"][0]["data"]
            flat = found[0] if isinstance(found[0], list) else found
            return all(abs(one - other) < _NEAR for one, other in zip(flat, self.wanted, strict=True))
        except (ValueError, TypeError, LookupError):
            return False

    def _request(self, **further: object) -> bytes:
        tensor = {"name": self.name, "datatype": "FP32", "shape": self.shape, **further}
        return json.dumps({"inputs": [tensor]}).encode()


# Three planes, each with a mean of its own: 50 176 numbers are 196 times those of 256.
IMAGE = Tensor(
    "IMAGE", (1, 3, 224, 224),
    array.array("f", [plane + (index % 256) / 256 for plane in range(3) for index in range(_PLANE)]),
    [plane + 255 / 512 for plane in range(3)],
    "inputs: [{name: IMAGE, datatype: FP32, shape: [-1, 3, 224, 224]}]\n"
    "outputs: [{name: MEAN, datatype: FP32, shape: [-1, 3]}]\n",
)  # fmt: skip
# For calls over gRPC; by the request over HTTP a server's start is seen.
NUMBERS = Tensor(
    "NUMBERS", (1, 16), array.array("f", range(16)), [sum(range(16))],
    "inputs: [{name: NUMBERS, datatype: FP32, shape: [-1, 16]}]\n"
    "outputs: [{name: SUM, datatype: FP32, shape: [-1, 1]}]\n",
)  # fmt: skip
