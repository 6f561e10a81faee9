"""Live streams by the Open Inference Protocol over HTTP, for tests/lab/real/streams.py."""

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.served import Served

OPTIONS: tuple[str, ...] = ()


def ways(served: Served, model: str) -> dict[str, Callable[[str, Any, bool, bool], float]]:
    def ask(stream: str, piece: Any, start: bool, end: bool) -> float:
        tensor = {"name": "pieces", "datatype": "FP32", "shape": list(piece.shape), "data": piece.tolist()}
        marks = {"sequence_id": stream, "sequence_start": start, "sequence_end": end}
        body = json.dumps({"inputs": [tensor], "parameters": marks}).encode()
        answer = served.ask(f"/v2/models/{model}/infer", body)
        assert answer.status == 200, answer.body
        return float(answer.json["outputs"][0]["data"][0])

    return {"OIP": ask}
