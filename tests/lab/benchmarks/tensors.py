"""Processor time of an inference request's tensor on the event loop: 150 000 numbers of FP32, as JSON and as bytes.

python -m tests.lab.benchmarks.tensors
"""

import json
import time
from collections.abc import Callable
from statistics import median

from daemon.api.tensors.elements import pack
from daemon.api.tensors.requests import parse_request
from daemon.core.arena import Arena

COUNT = 150_000  # numbers: 600 kB, as 224 × 224 × 3
ROUNDS = 15


def main() -> None:
    values = [round(number * 0.37 % 255, 3) for number in range(COUNT)]
    tensor = {"name": "a", "datatype": "FP32", "shape": [3, COUNT // 3]}
    flat = json.dumps({"inputs": [tensor | {"data": values}]}).encode()
    rows = [values[at : at + COUNT // 3] for at in range(0, COUNT, COUNT // 3)]
    nested = json.dumps({"inputs": [tensor | {"data": rows}]}).encode()
    data = pack("FP32", values)
    head = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": len(data)}}]}).encode()
    place = Arena().take(len(head) + len(data))
    assert place is not None
    place.view[:] = head + data
    ways: dict[str, Callable[[], object]] = {
        "JSON, flat": lambda: parse_request(flat),
        "JSON, nested": lambda: parse_request(nested),
        "binary": lambda: parse_request(place, len(head)),
    }
    for name, way in ways.items():
        taken = []
        for _ in range(ROUNDS):
            began = time.process_time()
            way()
            taken.append(time.process_time() - began)
        print(f"{name:15} {median(taken) * 1e3:8.3f} ms")


if __name__ == "__main__":
    main()
